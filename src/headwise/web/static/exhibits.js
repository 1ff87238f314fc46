// Exhibits: verdicts as a table with filters; one exhibit with figures, cells and claims; runs.
import { complain, element, get, latest, make, options, plain, post, rows, tiles, watch } from "./common.js";
import { draw } from "./figures.js";
import { follow } from "./following.js";

let lines = [], entries = [];
const followed = new Map();
const WIDE_ONLY = [undefined, undefined, "wide", "wide", "wide"];

function shown() {
  const verdict = element("verdict").value, source = element("source").value, folder = element("folder").value;
  const some = lines.filter((line) =>
    (!folder || line.exhibit.startsWith(`${folder}/`)) && (!source || line.from === source) &&
    (!verdict || (verdict === "agrees" ? line.agreement === 1 && !line.undecided && !line.failed : verdict === "differs" ? line.differs + line.failed > 0 : line.undecided > 0)));
  if (element("order").value === "worst") {
    some.sort((a, b) => b.compared.localeCompare(a.compared) || (a.agreement ?? 2) - (b.agreement ?? 2) || b.differs + b.failed - a.differs - a.failed);
  }
  return some;
}

function bar(line) {
  if (line.agreement === null) return line.undecided ? `${line.undecided} values undecided` : "nothing to compare";
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 100 10");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  let x = 0;
  const total = line.agrees + line.differs + line.undecided || line.claims;
  const parts = line.agrees + line.differs + line.undecided ? [line.agrees, line.undecided, line.differs] : [line.claims_held, 0, line.failed];
  parts.forEach((part, place) => {
    const piece = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const width = (100 * part) / total;
    for (const [name, value] of Object.entries({ x, y: 0, width, height: 10, class: ["share", "open", "rest"][place] })) piece.setAttribute(name, value);
    svg.append(piece);
    x += width;
  });
  return make("div", { class: "bar" }, svg, make("span", {}, `${line.agreed} of ${line.total} ${line.compared}`));
}

const titled = ({ exhibit, title, scale }) => make("div", {}, make("a", { href: `#${exhibit}${scale ? `~${scale}` : ""}` }, title), make("small", {}, scale ? `${exhibit}, scale ${scale}` : exhibit));

function list() {
  const some = shown();
  const exhibits = new Set(lines.map((line) => line.exhibit)).size;
  const more = lines.length > exhibits ? ` of ${exhibits} exhibits; some are recorded at two scales` : "";
  element("count").textContent = some.length ? `${some.length} of ${lines.length} records${more}` : "Nothing matches. Set the filters to “all”.";
  rows(element("list"), some.map((line) => {
    const values = line.agrees + line.differs + line.undecided;
    const agree = values ? `${line.agrees} of ${values}${line.undecided ? `, ${line.undecided} undecided` : ""}` : "no published values";
    return { classes: WIDE_ONLY, cells: [titled(line), bar(line), agree, line.claims ? `${line.claims_held} of ${line.claims}` : "", line.scale] };
  }));
}

// The titles are there before the records are read, which takes some seconds the first time.
function listed() {
  rows(element("list"), entries.map((entry) => ({ classes: WIDE_ONLY, cells: [titled(entry), "…", "", "", ""] })));
}

function totals() {
  const sum = (name) => lines.reduce((total, line) => total + line[name], 0);
  const printed = lines.filter((line) => line.compared === "values" && line.agreement !== null);
  const worst = [...printed].sort((a, b) => a.agreement - b.agreement || b.differs - a.differs)[0];
  tiles(element("totals"), [
    ["Exhibits", String(new Set(lines.map((line) => line.exhibit)).size)],
    ["Published values that agree", `${sum("agrees")} of ${sum("agrees") + sum("differs") + sum("undecided")}`],
    ["Claims that hold", `${sum("claims_held")} of ${sum("claims")}`],
    ...(worst ? [["Worst reproduced", make("a", { href: `#${worst.exhibit}~${worst.scale}` }, `${worst.title.split(":")[0]}: ${worst.agreed} of ${worst.total} agree`)]] : []),
  ]);
}

const open = latest(async (name, scale) => name && get(`/api/exhibits/${name}${scale ? `?scale=${scale}` : ""}`), (found, name, scale, recorded) => {
  element("one").hidden = !found;
  element("all").hidden = Boolean(found);
  if (!found) return;
  const entry = entries.find((each) => each.exhibit === name);
  options(element("scale"), [...found.parts.map((part, place) => [scale ? `stored:${part.scale}` : String(place), scale ? `${part.scale}, from the store` : `${part.scale}, recorded`]), ...(scale ? [["", "recorded"]] : [])]);
  for (const button of document.querySelectorAll("[data-run]")) button.hidden = !entry?.scales.includes(button.dataset.run);
  element("scale").onchange = () => {
    const chosen = element("scale").value;
    if (chosen === "") open(name);
    else if (!scale) part(name, found.parts[Number(chosen)]);
  };
  const own = found.parts.findIndex((each) => each.scale === recorded);
  const place = own < 0 ? found.parts.length - 1 : own;
  element("scale").value = scale ? `stored:${scale}` : String(place);
  part(name, found.parts[place]);
  element("one-title").focus({ preventScroll: true });
  scrollTo(0, 0);
});

function part(name, one) {
  element("one-title").textContent = one.title;
  element("one-words").textContent = [one.verdict, one.problem, one.disagreement].filter(Boolean).join(" · ");
  element("remarks").textContent = one.remarks.join(" ");
  element("rows").href = `/api/exhibits/${name}/rows.csv?scale=${one.scale}`;
  element("figures").replaceChildren(...one.figures.map(() => make("figure")));
  one.figures.forEach((each, place) => draw(element("figures").children[place], each.data, each.layout, each.alternative));
  element("claims").replaceChildren(...one.claims.map((claim) => make("li", {},
    make("b", { class: claim.holds ? "good" : "bad", "aria-hidden": "true" }, claim.holds ? "✓" : "✗"),
    `${claim.holds ? "Holds" : "Does not hold"}: ${claim.words} (${claim.source})`)));
  element("tables").replaceChildren(...one.tables.map((table) => watch(make("div", { class: "scroll", role: "region", "aria-label": table.title || "Table", tabindex: "0" }, make("table", {}, table.title ? make("caption", {}, table.title) : null,
    make("thead", {}, make("tr", {}, ...table.columns.map((each) => make(each ? "th" : "td", each ? { scope: "col" } : {}, each)))),
    make("tbody", {}, ...table.rows.map((row) => make("tr", {}, ...row.map((each) => make("td", {}, plain(each)))))))))));
  element("cells").parentElement.hidden = one.cells.length === 0;
  rows(element("cells"), one.cells.map((cell) => ({
    cells: [cell.name, plain(cell.printed), plain(cell.measured), cell.statistic, String(+cell.stderr.toPrecision(2)), make("span", { class: { agrees: "good", differs: "bad" }[cell.verdict] }, cell.verdict)],
  })));
}

async function start(exhibit, scale) {
  try {
    complain(null);
    await post(`/api/exhibits/${exhibit}/run`, { scale });
    await runs();
    element("runs").scrollIntoView({ block: "center" });
  } catch (error) {
    complain(error);
  }
}

function runLine(run) {
  const progress = make("div", { role: "status" }), stop = make("button", { type: "button", hidden: true }, "Stop");
  const stored = run.stored === "missing" ? "nothing is stored yet" : run.stored === "stored" ? "everything is stored" : run.stored;
  const again = make("button", { type: "button", onclick: () => start(run.exhibit, run.scale) }, "Resume");
  const forget = make("button", { type: "button", onclick: async () => {
    await post("/api/runs/forget", { exhibit: run.exhibit, scale: run.scale }).catch(complain);
    runs();
  } }, "Forget");
  const line = make("li", {}, make("p", {}, make("b", {}, run.title), ` at scale ${run.scale}`), progress);
  if (run.job && followed.get(run.job) !== "over") {
    line.append(make("p", { class: "buttons" }, stop));
    follow(run.job, { progress, cancel: stop, done: ({ notes }) => {
      followed.set(run.job, "over");
      progress.replaceChildren(make("p", {}, ["Done.", ...notes].join(" ")));
      line.append(make("p", { class: "buttons" }, make("button", { type: "button", onclick: () => { location.hash = ""; location.hash = `${run.exhibit}@${run.scale}`; } }, "Show what it gave")));
    }, failed: (error) => { followed.set(run.job, "over"); complain(error); runs(); }, over: () => {
      if (!progress.textContent) return;
      followed.set(run.job, "over");
      runs();
    } });
  } else {
    progress.textContent = `Not finished: ${stored}.`;
    line.append(make("p", { class: "buttons" }, again, forget));
  }
  return line;
}

async function runs() {
  try {
    const found = await get("/api/runs");
    element("runs").hidden = !found.length;
    element("running").replaceChildren(...found.map(runLine));
  } catch (error) {
    complain(error);
  }
}

function named() {
  const [, name, mark, scale] = decodeURIComponent(location.hash.slice(1)).match(/^([^@~]*)([@~]?)(.*)$/);
  // After @ stands a scale of the store, after ~ one of the records.
  if (name || !element("one").hidden) open(name, mark === "@" ? scale : "", mark === "~" ? scale : "");
}

const FILTERS = ["verdict", "source", "folder", "order"];

// Filters stand in the address, so that a filtered list can be bookmarked.
function filtered() {
  const chosen = FILTERS.map((id) => [id, element(id).value]).filter(([id, value]) => value !== element(id).options[0].value);
  history.replaceState(null, "", `${location.pathname}${chosen.length ? `?${new URLSearchParams(chosen)}` : ""}${location.hash}`);
  list();
}

for (const id of FILTERS) {
  const given = new URLSearchParams(location.search).get(id);
  if ([...element(id).options].some((option) => option.value === given)) element(id).value = given;
  element(id).onchange = filtered;
}
element("filters").onsubmit = (event) => event.preventDefault();
for (const button of document.querySelectorAll("[data-run]")) {
  button.onclick = () => start(decodeURIComponent(location.hash.slice(1)).split(/[@~]/)[0], button.dataset.run);
}
window.onhashchange = named;
runs();
try {
  entries = await get("/api/exhibits");
  listed();
  named();
  lines = await get("/api/verdicts");
  element("loading").hidden = true;
  totals();
  list();
} catch (error) {
  complain(error);
}
