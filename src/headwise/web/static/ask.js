// Ask: drop something, get an answer; sliders re-rank without a second measurement.
import { complain, draw, element, follow, later, post, rows, short } from "./common.js";

let files = [];
let answer = null;

const sliderValue = (id, least, most) => {
  const place = Number(element(id).value);
  return place >= 100 ? null : Math.round(least * (most / least) ** (place / 99));
};

function limits() {
  const width = answer?.width || Number(element("width").value) || 512;
  const params = sliderValue("params", width * 4, 16 * width * width);
  const bytes = sliderValue("kv_bytes", 4, 16 * width);
  const multiple = 2 ** Number(element("multiple_of").value);
  element("params-shown").textContent = params === null ? "no limit" : short(params);
  element("kv_bytes-shown").textContent = bytes === null ? "no limit" : short(bytes);
  element("multiple_of-shown").textContent = multiple;
  const given = { multiple_of: multiple, any_shape: element("any_shape").checked };
  if (params !== null) given.params = params;
  if (bytes !== null) given.kv_bytes = bytes;
  if (element("task").value) given.task = element("task").value;
  return given;
}

function choose(list) {
  files = [...list];
  element("dropped").textContent = files.length
    ? files.map((file) => file.name).slice(0, 4).join(", ") + (files.length > 4 ? ` and ${files.length - 4} more` : "")
    : "Nothing chosen: the law answers from length and width.";
  const measured = files.some((file) => !file.name.endsWith(".json"));
  const config = files.some((file) => file.name.endsWith(".json"));
  for (const id of ["length", "width"]) element(id).disabled = measured || config;
}

async function ask(event) {
  event.preventDefault();
  complain(null);
  const given = limits();
  for (const id of ["length", "width", "mask"]) {
    const field = element(id);
    if (field.value && !field.disabled) given[id] = id === "mask" ? field.value : Number(field.value);
  }
  const form = new FormData();
  form.append("given", JSON.stringify(given));
  for (const file of files) form.append("files", file, file.name);
  try {
    const { job } = await post("/api/ask", form);
    follow(job, { progress: element("progress"), cancel: element("cancel"), done: show });
  } catch (error) {
    complain(error);
  }
}

const again = later(async () => {
  const given = limits();
  if (!answer) return;
  try {
    complain(null);
    show(await post(`/api/ask/${answer.key}`, given));
  } catch (error) {
    complain(error);
  }
});

function geometryWords(geometry) {
  const kv = geometry.kv_heads && geometry.kv_heads !== geometry.heads ? ` (${geometry.kv_heads} kv)` : "";
  const rank = geometry.qk_rank === geometry.v_rank ? geometry.qk_rank : `${geometry.qk_rank}/${geometry.v_rank}`;
  return `${geometry.heads} × ${rank}${kv}`;
}

function show(found) {
  answer = found;
  limits();
  element("answer").hidden = false;
  element("question").textContent = found.question.replaceAll("`", "");
  element("verdict").textContent = found.answer;
  element("caveat").textContent = found.caveat || "";
  element("reasons").replaceChildren(...found.reasons.map((words) => {
    const line = document.createElement("li");
    line.textContent = words.replaceAll("`", "");
    return line;
  }));
  const beside = found.references.filter((one) =>
    !found.choices.some((choice) => geometryWords(choice.geometry) === geometryWords(one.geometry)));
  rows(element("choices"), [...found.choices, ...beside].map((choice, place) => ({
    className: place === 0 ? "advised" : "",
    cells: [
      geometryWords(choice.geometry) + (place === 0 ? " (advised)" : ""),
      choice.role,
      choice.costs.parameters.toLocaleString("en"),
      choice.costs.cache_bytes_per_token.toLocaleString("en"),
      `${Math.round(100 * choice.plateau_share)}%`,
      choice.floor.toFixed(3),
    ],
  })));
  curves(found);
}

function curves(found) {
  const data = found.curves.map((curve) => ({
    x: curve.head_dims, y: curve.mean, mode: "lines+markers", name: curve.start,
    error_y: { type: "data", array: curve.half_width, visible: curve.half_width.some(Boolean) },
  }));
  const best = found.choices[0];
  const chosen = { type: "line", yref: "paper", y0: 0, y1: 1, x0: best.rank, x1: best.rank, line: { dash: "dot", width: 2 } };
  draw(element("curve"), data, {
    title: { text: "Rank over tokens against head dimension" },
    xaxis: { title: { text: "head dimension" }, type: "log" },
    yaxis: { title: { text: "rank / tokens" } },
    shapes: [{ ...chosen, line: { ...chosen.line, color: "#e07a1f" } }],
  }, `Rank over tokens against head dimension; the advised rank is ${best.rank}.`);
}

element("files").onchange = (event) => choose(event.target.files);
const drop = element("drop");
drop.ondragover = (event) => { event.preventDefault(); drop.classList.add("over"); };
drop.ondragleave = () => drop.classList.remove("over");
drop.ondrop = (event) => {
  event.preventDefault();
  drop.classList.remove("over");
  choose(event.dataTransfer.files);
};
element("ask").onsubmit = ask;
for (const id of ["params", "kv_bytes", "multiple_of"]) element(id).oninput = again;
for (const id of ["any_shape", "task"]) element(id).onchange = again;
for (const button of document.querySelectorAll("[data-copy]")) {
  button.onclick = async () => {
    await navigator.clipboard.writeText(answer.copy[button.dataset.copy]);
    element("copied").textContent = "Copied.";
  };
}
limits();
