// Bounds: the heads that an error needs, against rank, with known models as points.
import { complain, draw, element, get, later, rows } from "./common.js";

const width = () => Math.round(2 ** (Number(element("width").value) / 4));

async function show() {
  const wanted = Number(element("error-wanted").value) / 100;
  element("width-shown").textContent = width();
  element("error-shown").textContent = wanted.toFixed(2);
  history.replaceState(null, "", `?w=${element("width").value}&e=${element("error-wanted").value}`);
  try {
    complain(null);
    const found = await get(`/api/bounds?width=${width()}&error=${wanted}`);
    const near = found.models.filter((model) => model.width === found.width);
    draw(element("curve"), [
      { x: found.rank, y: found.log10_heads, mode: "lines+markers", name: `error ${wanted} needs` },
      { x: near.map((m) => m.rank), y: near.map((m) => Math.log10(m.heads)), text: near.map((m) => m.name), mode: "markers+text", textposition: "top center", name: "known models of this width" },
    ], {
      title: { text: `Heads needed at width ${found.width}` },
      xaxis: { title: { text: "rank of a head" }, type: "log" },
      yaxis: { title: { text: "heads, as a power of ten" }, rangemode: "tozero" },
    }, `Heads needed for error ${wanted} at width ${found.width}, against rank.`);
    const first = found.rank.length ? `Rank ${found.rank[0]} needs at least 10^${found.log10_heads[0].toFixed(1)} heads. ` : "";
    element("words").textContent = `${first}One head of rank ${found.width} is exact.`;
    rows(element("models"), found.models.map((model) => ({
      cells: [model.name, String(model.width), String(model.rank), String(model.heads), model.error.toFixed(3)],
    })));
  } catch (error) {
    complain(error);
  }
}

const given = new URLSearchParams(location.search);
if (given.has("w")) element("width").value = given.get("w");
if (given.has("e")) element("error-wanted").value = given.get("e");
const soon = later(show);
for (const id of ["width", "error-wanted"]) element(id).oninput = soon;
element("bounds").onsubmit = (event) => event.preventDefault();
show();
