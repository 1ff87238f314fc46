// Ask: drop something, get an answer; sliders re-rank without a second measurement.
import { columns, complain, element, latest, later, make, post, rows, short, tiles } from "./common.js";
import { draw, WARM } from "./figures.js";
import { follow } from "./following.js";

const NUMBERS = ["length", "width", "patch", "size"], CHOICES = ["mask", "tokenizer"];
const COPIES = { layer: "PyTorch layer", config: "Hugging Face config", command: "Command", python: "Python call" };
let files = [];
let answer = null;
let running = null;

// An answer to an earlier question is not shown as if it were this one's.
const stale = (old) => {
  element("answer").classList.toggle("stale", old);
  element("stale").hidden = !old;
};

const sliderValue = (id, least, most) => {
  const place = Number(element(id).value);
  return place >= 100 ? null : Math.round(least * (most / least) ** (place / 99));
};

function limits() {
  const width = answer?.width || Number(element("width").value) || 512;
  const params = sliderValue("params", width * 4, 16 * width * width);
  const bytes = sliderValue("kv_bytes", 4, 16 * width);
  const multiple = 2 ** Number(element("multiple_of").value);
  const shown = { params: params === null ? "no limit" : short(params), kv_bytes: bytes === null ? "no limit" : short(bytes), multiple_of: String(multiple) };
  for (const [id, words] of Object.entries(shown)) {
    element(`${id}-shown`).textContent = words;
    element(id).setAttribute("aria-valuetext", words);
  }
  const given = { multiple_of: multiple, any_shape: element("any_shape").checked, need: element("need").value };
  if (params !== null) given.params = params;
  if (bytes !== null) given.kv_bytes = bytes;
  if (element("task").value) given.task = element("task").value;
  return given;
}

function choose(list) {
  files = [...list];
  const names = files.slice(0, 4).map((file) => file.name).join(", ");
  element("dropped").textContent = files.length
    ? `${names}${files.length > 4 ? ` and ${files.length - 4} more` : ""}. Press Ask.`
    : "Nothing chosen: the answer comes from the length and the width below.";
  stale(true);
  element("clear").hidden = !files.length;
  for (const id of ["length", "width"]) {
    element(id).value = files.length ? "" : element(id).defaultValue;
    element(id).placeholder = files.length ? "from the file" : "";
  }
}

function question() {
  const given = limits();
  for (const id of NUMBERS) if (element(id).value) given[id] = element(id).type === "number" ? Number(element(id).value) : element(id).value;
  for (const id of CHOICES) if (element(id).value) given[id] = element(id).value;
  return given;
}

async function ask(event) {
  event?.preventDefault();
  complain(null);
  stale(true);
  if (running) {
    post(`/api/jobs/${running.job}/cancel`).catch(complain);
    running.end("");
    running = null;
  }
  const given = question();
  const form = new FormData();
  form.append("given", JSON.stringify(given));
  for (const file of files) form.append("files", file, file.name);
  const address = files.length ? { ...given, file: files[0].name } : given;
  history.replaceState(null, "", `?${new URLSearchParams(address)}`);
  try {
    const { job } = await post("/api/ask", form);
    const end = follow(job, { progress: element("progress"), cancel: element("cancel"), over: () => { running = null; }, done: (found) => {
      show(found);
      if (files.length) element("dropped").textContent = `${files[0].name}${files.length > 1 ? ` and ${files.length - 1} more` : ""}: answered below.`;
      if (event) element("answer").scrollIntoView({ block: "start" });
    } });
    running = { job, end };
  } catch (error) {
    complain(error);
  }
}

const again = later(latest(async () => {
  const given = limits();
  return answer && post(`/api/ask/${answer.key}`, given);
}, (found) => found && show(found)));

function show(found) {
  answer = found;
  stale(false);
  limits();
  const { geometry, costs } = found.choices[0];
  element("answer").hidden = false;
  element("question").textContent = found.question;
  element("verdict").textContent = found.answer;
  element("caveat").textContent = found.caveat;
  tiles(element("tiles"), [
    ["Heads", geometry.heads.toLocaleString("en")],
    ["Rank", geometry.qk_rank === geometry.v_rank ? String(geometry.qk_rank) : `${geometry.qk_rank} / ${geometry.v_rank}`],
    ["Parameters", short(costs.parameters)],
    ["KV bytes per token", short(costs.cache_bytes_per_token)],
  ]);
  element("reasons").replaceChildren(...found.reasons.map((words) => make("li", {}, words)));
  const { columns: names, rows: lines } = found.table;
  columns(element("choices"), names, lines[0]);
  rows(element("choices"), lines.map((cells) => {
    const advised = String(cells[0]).startsWith("→");
    return { className: advised ? "advised" : "", cells: [String(cells[0]).replace("→", "").trim() + (advised && !String(cells[0]).includes("advised") ? " (advised)" : ""), ...cells.slice(1)] };
  }));
  element("legend").replaceChildren(...found.legend.map((words) => make("li", {}, words)));
  element("findings").replaceChildren(...found.findings.flatMap(({ label, words, table }) => [make("dt", {}, label), make("dd", {}, words, table && small(table))]));
  columns(element("costs"), found.costs.columns, found.costs.rows[0]);
  rows(element("costs"), found.costs.rows.map((cells) => ({ cells })));
  copies(found.copy, found.remarks);
  curves(found);
}

function small({ columns: names, rows: lines }) {
  const table = make("table", {}, make("thead"), make("tbody"));
  columns(table, names, lines[0]);
  rows(table, lines.map((cells) => ({ cells })));
  return make("div", { class: "scroll" }, table);
}

function copies(texts, remarks) {
  element("copies").replaceChildren(...Object.entries(COPIES).map(([name, title]) => {
    const text = make("pre", { tabindex: "0", "aria-label": title }, texts[name]);
    const button = make("button", { type: "button", "data-copy": name, "aria-label": `Copy the ${title}` }, "Copy");
    button.onclick = () => copy(texts[name], text, title);
    return make("section", {}, make("h3", {}, title, button), text, remarks[name] ? make("p", { class: "hint" }, remarks[name]) : null);
  }));
}

async function copy(text, place, title) {
  try {
    await navigator.clipboard.writeText(text);
    element("copied").textContent = `Copied the ${title}.`;
  } catch {
    // Browsers give the clipboard to secure pages alone; a selected text can be copied by hand.
    getSelection().selectAllChildren(place);
    element("copied").textContent = "Selected. Press Ctrl-C to copy.";
  }
}

function curves(found) {
  const names = { model: "default initialisation", paper: "N(0, 1) weights", law: "law for random heads" };
  const data = found.curves.map((curve) => ({
    x: curve.head_dims, y: curve.mean, mode: "lines+markers", name: names[curve.start] ?? curve.start,
    error_y: { type: "data", array: curve.half_width, visible: curve.half_width.some(Boolean) },
  }));
  const best = found.choices[0].rank;
  draw(element("curve"), data, {
    title: { text: "Rank of a head's attention, before training" },
    xaxis: { title: { text: "head dimension" }, type: "log" },
    yaxis: { title: { text: "rank / tokens" }, rangemode: "tozero" },
    shapes: [{ type: "line", yref: "paper", y0: 0, y1: 1, x0: best, x1: best, line: { dash: "dot", width: 2, color: WARM() } }],
    annotations: [{ x: Math.log10(best), y: 1, yref: "paper", text: `advised: ${best}`, showarrow: false, xanchor: "left", yanchor: "top", xshift: 6, font: { color: WARM() } }],
    showlegend: true,
  }, `Rank divided by the number of tokens, against the head dimension. The dotted line is the advised rank, ${best}. ${found.curve_notes.join(" ")}`);
}

function restore() {
  const given = new URLSearchParams(location.search);
  for (const id of [...NUMBERS, ...CHOICES, "task", "need"]) if (given.has(id)) element(id).value = given.get(id);
  element("any_shape").checked = given.get("any_shape") === "true";
  if (given.has("multiple_of")) element("multiple_of").value = Math.log2(Number(given.get("multiple_of")));
}

element("files").onchange = (event) => choose(event.target.files);
element("clear").onclick = () => { element("files").value = ""; choose([]); element("files").focus(); };
const drop = element("drop");
drop.ondragover = (event) => { event.preventDefault(); drop.classList.add("over"); };
drop.ondragleave = () => drop.classList.remove("over");
drop.ondrop = (event) => {
  event.preventDefault();
  drop.classList.remove("over");
  choose(event.dataTransfer.files);
};
element("ask").onsubmit = ask;
for (const id of ["params", "kv_bytes", "multiple_of"]) element(id).oninput = () => { limits(); again(); };
for (const id of ["any_shape", "task", "need"]) element(id).onchange = again;
for (const id of ["length", "width"]) element(id).oninput = () => stale(true);
restore();
limits();
const file = new URLSearchParams(location.search).get("file");
if (file) element("dropped").textContent = `This address asked about ${file}. Choose the file again, then press Ask.`;
else ask();
