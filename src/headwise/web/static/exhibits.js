// Exhibits: the verdicts as a table with filters; one exhibit with its figures, cells and claims.
import { complain, draw, element, follow, get, post, rows } from "./common.js";

let lines = [];

function shown() {
  const verdict = element("verdict").value, source = element("source").value;
  const some = lines.filter((line) =>
    (!source || line.exhibit.startsWith(`${source}/`)) &&
    (!verdict || (verdict === "agrees" ? line.agrees && !line.differs && !line.undecided : line[verdict] > 0)));
  const share = (line) => line.differs / Math.max(1, line.agrees + line.differs + line.undecided);
  if (element("order").value === "worst") some.sort((a, b) => share(b) - share(a) || b.differs - a.differs);
  return some;
}

function list() {
  rows(element("list"), shown().map((line) => {
    const link = document.createElement("a");
    link.href = `#${line.exhibit}`;
    link.textContent = line.exhibit;
    return { cells: [link, line.title, line.scale, line.agrees, line.differs, line.undecided, `${line.claims_held} of ${line.claims}`] };
  }));
}

async function open() {
  const name = location.hash.slice(1);
  element("one").hidden = !name;
  if (!name) return;
  try {
    complain(null);
    const found = await get(`/api/exhibits/${name}`);
    const part = found.parts.at(-1);
    element("one-title").textContent = `${name}: ${part.title}`;
    element("one-words").textContent = `${part.verdict} ${part.problem} ${part.remarks.join(" ")}`.trim();
    element("rows").href = `/api/exhibits/${name}/rows.csv`;
    element("figures").replaceChildren(...part.figures.map((figure) => {
      const place = document.createElement("div");
      place.className = "figure";
      place.setAttribute("role", "img");
      return place;
    }));
    part.figures.forEach((figure, i) => draw(element("figures").children[i], figure.data, figure.layout, figure.alternative));
    element("cells").hidden = part.cells.length === 0;
    rows(element("cells"), part.cells.map((cell) => ({
      cells: [cell.name, String(+cell.printed.toPrecision(5)), String(+cell.measured.toPrecision(5)), String(+cell.stderr.toPrecision(2)), cell.verdict],
    })));
    element("claims").replaceChildren(...part.claims.map((claim) => {
      const line = document.createElement("li");
      line.textContent = `${claim.holds ? "Holds" : "Does not hold"}: ${claim.words} (${claim.source})`;
      return line;
    }));
    element("one-title").focus();
    element("one").scrollIntoView();
  } catch (error) {
    complain(error);
  }
}

for (const id of ["verdict", "source", "order"]) element(id).onchange = list;
element("filters").onsubmit = (event) => event.preventDefault();
for (const button of document.querySelectorAll("[data-run]")) {
  button.onclick = async () => {
    try {
      complain(null);
      const { job } = await post(`/api/exhibits/${location.hash.slice(1)}/run`, { scale: button.dataset.run });
      const place = element("progress");
      follow(job, { progress: place, cancel: element("cancel"), done: () => { place.textContent = "Done: the rows are in the store."; } });
    } catch (error) {
      complain(error);
    }
  };
}
window.onhashchange = open;
open();
try {
  lines = await get("/api/verdicts");
  element("loading").hidden = true;
  list();
} catch (error) {
  complain(error);
}
