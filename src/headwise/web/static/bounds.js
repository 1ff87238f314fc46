// Bounds: the heads that an error needs, against rank, with known models as points.
import { element, get, latest, later, rows } from "./common.js";
import { ACCENT, draw, WARM } from "./figures.js";

const WIDTHS = [4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 576, 640, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384];
const width = () => WIDTHS[Number(element("width").value)];
const wanted = () => Number(element("error-wanted").value) / 100;
const power = (log) => (log < 5 ? Math.ceil(10 ** log - 1e-9).toLocaleString("en") : `10^${log.toFixed(0)}`);

function settings() {
  const shown = { width: String(width()), error: wanted().toFixed(2) };
  element("width-shown").textContent = shown.width;
  element("error-shown").textContent = shown.error;
  element("width").setAttribute("aria-valuetext", shown.width);
  element("error-wanted").setAttribute("aria-valuetext", shown.error);
  history.replaceState(null, "", `?width=${shown.width}&error=${shown.error}`);
}

// Models of one rank lie close together, so their names stand in one place.
function points(models) {
  const named = new Set();
  return models.map(({ rank, heads }) => {
    const names = named.has(rank) ? "" : models.filter((one) => one.rank === rank).map((one) => one.name).join("<br>");
    named.add(rank);
    return { rank, heads, name: names };
  });
}

function show(found) {
  const near = points(found.near);
  const half = found.rank.findLastIndex((rank) => rank <= found.width / 2);
  element("words").textContent = half < 0 ? `One head of rank ${found.width} is exact.`
    : `Heads of rank ${found.rank[half]}, half the width, must number at least ${power(found.log10_heads[half])}`;
  const empty = half >= 0 && found.log10_heads[half] <= 0 ? "At least 1 excludes nothing: ask for a smaller error. " : "";
  element("more-words").textContent = `${empty}The curve has the other ranks. That is for an error of ${found.error} at width ${found.width}. One head of rank ${found.width} is exact, and costs as much as ${Math.round(found.width / (found.rank[half] ?? 1))} of those.`;
  draw(element("curve"), [
    { x: found.rank, y: found.log10_heads, mode: "lines+markers", name: `heads needed for error ${found.error}`, line: { color: ACCENT() } },
    { x: near.map((m) => m.rank), y: near.map((m) => Math.log10(m.heads)), text: near.map((m) => m.name), mode: "markers+text",
      textposition: near.map((m) => (m.rank < Math.max(...near.map((one) => one.rank)) ? "top left" : "top center")), name: "known models of about this width", cliponaxis: false, marker: { color: WARM(), size: 11, symbol: "diamond" } },
  ], {
    title: { text: `Heads needed at width ${found.width}` },
    xaxis: { title: { text: "rank of a head" }, type: "log" },
    yaxis: { title: { text: "least number of heads" }, rangemode: "tozero", tickprefix: "10<sup>", ticksuffix: "</sup>" },
  }, `Least number of heads for error ${found.error} at width ${found.width}, against the rank of a head, as a power of ten. Points are known models of about this width. Below the curve no layer can reach the error; above it the bound does not exclude it.`);
  rows(element("models"), found.models.map((model) => ({
    cells: [model.name, model.width, model.rank, model.heads, model.error.toFixed(3)],
  })));
}

const given = new URLSearchParams(location.search);
element("width").max = WIDTHS.length - 1;
element("width").value = Math.max(0, WIDTHS.indexOf(Number(given.get("width") ?? 768)));
if (given.has("error")) element("error-wanted").value = Math.round(100 * Number(given.get("error")));
const soon = later(latest(() => get(`/api/bounds?width=${width()}&error=${wanted()}`), show));
for (const id of ["width", "error-wanted"]) element(id).oninput = () => { settings(); soon(); };
element("bounds").onsubmit = (event) => event.preventDefault();
settings();
soon();
