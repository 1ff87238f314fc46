// Law: sliders for length, head dimension and mask; a simulated head beside the curve.
import { complain, draw, element, get, later } from "./common.js";

const MOST_PICTURED = 256;
let seed = 0;

const length = () => Math.round(2 ** (Number(element("length").value) / 2));
const headDim = () => Math.round(2 ** (Number(element("head_dim").value) / 4));

function address() {
  const given = { n: length(), d: headDim(), mask: element("mask").value, f: element("fraction").value };
  history.replaceState(null, "", `?${new URLSearchParams(given)}`);
}

function restore() {
  const given = new URLSearchParams(location.search);
  if (given.has("n")) element("length").value = Math.round(2 * Math.log2(Number(given.get("n"))));
  if (given.has("d")) element("head_dim").value = Math.round(4 * Math.log2(Number(given.get("d"))));
  if (given.has("mask")) element("mask").value = given.get("mask");
  if (given.has("f")) element("fraction").value = given.get("f");
}

async function show() {
  const n = length(), d = headDim(), mask = element("mask").value;
  const fraction = Number(element("fraction").value) / 100;
  element("length-shown").textContent = n.toLocaleString("en");
  element("head_dim-shown").textContent = d;
  element("fraction-shown").textContent = fraction.toFixed(2);
  address();
  try {
    complain(null);
    const found = await get(`/api/law?length=${n}&mask=${mask}&fraction=${fraction}`);
    element("law-answer").textContent = `Head dimension ${found.critical_head_dim} reaches ${Math.round(100 * fraction)}% of the barrier`;
    element("law-words").textContent = `The barrier is ${found.barrier.toFixed(4)} of ${n.toLocaleString("en")} tokens. A larger head dimension adds little rank.`;
    const line = (y, dash, color) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, line: { dash, color, width: 1.5 } });
    const at = (x, color) => ({ type: "line", yref: "paper", y0: 0, y1: 1, x0: x, x1: x, line: { dash: "dot", color, width: 1.5 } });
    draw(element("curve"), [{ x: found.head_dim, y: found.ratio, mode: "lines+markers", name: "rank / tokens" }], {
      title: { text: `Rank over tokens at ${n.toLocaleString("en")} tokens` },
      xaxis: { title: { text: "head dimension" }, type: "log" },
      yaxis: { title: { text: "rank / tokens" }, rangemode: "tozero" },
      shapes: [line(found.barrier, "dash", "#a4243b"), line(fraction * found.barrier, "dot", "#888"), at(found.critical_head_dim, "#888"), at(d, "#e07a1f")],
    }, `Rank over tokens rises from ${found.ratio[0].toFixed(3)} to ${found.ratio.at(-1).toFixed(3)}; the barrier is ${found.barrier.toFixed(3)}.`);
    await picture(n, d, mask);
  } catch (error) {
    complain(error);
  }
}

async function picture(n, d, mask) {
  if (n > MOST_PICTURED) {
    element("head-words").textContent = `A head is drawn up to ${MOST_PICTURED} tokens.`;
    element("head").hidden = true;
    return;
  }
  element("head").hidden = false;
  const found = await get(`/api/head?length=${n}&head_dim=${d}&mask=${mask}&seed=${seed}`);
  const lit = new Set(found.used);
  const top = [Array.from({ length: n }, (_, column) => (lit.has(column) ? 1 : 0))];
  const map = { type: "heatmap", showscale: false, colorscale: [[0, "rgba(128,128,128,.08)"], [1, "#2a6fb0"]], hoverinfo: "x+y+z" };
  draw(element("head"), [
    { ...map, z: found.weights, yaxis: "y" },
    { ...map, z: top, yaxis: "y2", colorscale: [[0, "rgba(128,128,128,.15)"], [1, "#e07a1f"]] },
  ], {
    title: { text: "Attention of one random head" },
    xaxis: { title: { text: "key" } },
    yaxis: { title: { text: "query" }, autorange: "reversed", domain: [0, 0.92] },
    yaxis2: { domain: [0.95, 1], showticklabels: false },
  }, `Attention of a random head: ${found.used.length} of ${n} columns are used.`);
  const rank = found.low === found.high ? found.low : `${found.low} to ${found.high}`;
  element("head-words").textContent = `This head uses ${found.used.length} of its ${n} columns (orange). Its rank is ${rank}, certified in float64: ${(found.low / n).toFixed(3)} of the tokens.`;
}

restore();
const soon = later(show);
for (const id of ["length", "head_dim", "fraction"]) element(id).oninput = soon;
element("mask").onchange = soon;
element("law").onsubmit = (event) => event.preventDefault();
element("redraw").onclick = () => { seed += 1; show(); };
show();
