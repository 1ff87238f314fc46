// Law: sliders for length, head dimension and mask; a simulated head beside the curve.
import { element, get, latest, later, tiles } from "./common.js";
import { ACCENT, draw, QUIET, undraw, WARM } from "./figures.js";

const MOST_PICTURED = 256;
let seed = 0;

const length = () => Math.round(2 ** (Number(element("length").value) / 2));
const headDim = () => Math.round(2 ** (Number(element("head_dim").value) / 4));

function restore() {
  const given = new URLSearchParams(location.search);
  if (given.has("n")) element("length").value = Math.round(2 * Math.log2(Number(given.get("n"))));
  if (given.has("d")) element("head_dim").value = Math.round(4 * Math.log2(Number(given.get("d"))));
  if (given.has("mask")) element("mask").value = given.get("mask");
  if (given.has("f")) element("fraction").value = given.get("f");
}

function settings() {
  const n = length(), d = headDim(), mask = element("mask").value;
  const fraction = Number(element("fraction").value) / 100;
  const shown = { length: n.toLocaleString("en"), head_dim: String(d), fraction: `${Math.round(100 * fraction)}%` };
  for (const [id, words] of Object.entries(shown)) {
    element(`${id}-shown`).textContent = words;
    element(id).setAttribute("aria-valuetext", words);
  }
  history.replaceState(null, "", `?${new URLSearchParams({ n, d, mask, f: element("fraction").value })}`);
  return { n, d, mask, fraction };
}

function show(found, { n, d, fraction }) {
  const enough = Math.round(100 * fraction), tokens = n.toLocaleString("en");
  const here = found.at;
  element("law-answer").textContent = `Head dimension ${found.critical_head_dim} reaches ${enough}% of the barrier`;
  tiles(element("law-tiles"), [
    ["Mean rank at this head dimension", `${Math.round(here * n).toLocaleString("en")} of ${tokens}`],
    ["Of the barrier", `${Math.min(100, Math.round((100 * here) / found.barrier))}%`],
    ["Barrier / tokens", found.barrier.toFixed(3)],
  ]);
  const gain = found.gain_head_dim === null ? "" : ` From head dimension ${found.gain_head_dim} on, 16 more dimensions add less than 0.01 to rank / tokens: the rank paper's rule.`;
  element("law-words").textContent = `${gain ? "Two ways to saturate. " : ""}Head dimension ${found.critical_head_dim} reaches ${enough}% of the most that any head dimension gives.${gain}`;
  const line = (y, dash, color) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, line: { dash, color, width: 1.5 } });
  const at = (x, color) => ({ type: "line", yref: "paper", y0: 0, y1: 1, x0: x, x1: x, line: { dash: "dot", color, width: 1.5 } });
  const told = (y, text, color) => ({ xref: "paper", x: 0, xanchor: "left", y, yanchor: "bottom", text, showarrow: false, font: { color } });
  const foot = (x, y, text, color) => ({ x: Math.log10(x), yref: "paper", y, xanchor: "left", yanchor: "bottom", xshift: 3, text, showarrow: false, font: { color } });
  return draw(element("curve"), [
    { x: found.head_dim, y: found.ratio, mode: "lines+markers", name: "law", line: { color: ACCENT() } },
    { x: [d], y: [here], mode: "markers", name: "this head dimension", marker: { size: 13, color: WARM() } },
  ], {
    title: { text: `Rank of a random head of ${tokens} tokens` },
    xaxis: { title: { text: "head dimension" }, type: "log" },
    yaxis: { title: { text: "rank / tokens" }, rangemode: "tozero" },
    shapes: [line(found.barrier, "dash", WARM()), line(fraction * found.barrier, "dot", QUIET()), at(found.critical_head_dim, QUIET()), ...(found.gain_head_dim === null ? [] : [at(found.gain_head_dim, ACCENT())])],
    annotations: [told(found.barrier, "barrier", WARM()), told(fraction * found.barrier, `${enough}% of it`, QUIET()), foot(found.critical_head_dim, 0, `${enough}%: ${found.critical_head_dim}`, QUIET()),
      ...(found.gain_head_dim === null ? [] : [foot(found.gain_head_dim, 0.08, `gain: ${found.gain_head_dim}`, ACCENT())])],
  }, `Rank divided by the number of tokens, against the head dimension, at ${tokens} tokens. It rises from ${found.ratio[0].toFixed(3)} to ${found.ratio.at(-1).toFixed(3)}. The barrier is ${found.barrier.toFixed(3)}; ${enough}% of it is reached at head dimension ${found.critical_head_dim}.`);
}

function picture(found, { n, d }) {
  if (!found) {
    undraw(element("head"));
    element("head-words").textContent = "A head is drawn for short sequences only. Move the slider of the tokens down to see one.";
    return null;
  }
  const lit = new Set(found.used);
  const top = [Array.from({ length: n }, (_, column) => (lit.has(column) ? 1 : 0))];
  const map = { type: "heatmap", showscale: false, xgap: 0, hovertemplate: "query %{y}, key %{x}: %{z}<extra></extra>" };
  const whole = n <= 8 ? { dtick: 1 } : {};
  const rank = found.low === found.high ? String(found.low) : `${found.low} to ${found.high}`;
  element("head-words").textContent = `The picture is the attention matrix: one row for each query, one column for each key. The largest weights of the rows lie in ${found.used.length} of its ${n} columns, which are lit above it. These are the columns of hardmax, and the law gives their mean number. The rank of softmax, which keeps small weights too, is ${rank}, certified in float64: ${(found.low / n).toFixed(3)} of the tokens.`;
  return draw(element("head"), [
    { ...map, z: found.weights, yaxis: "y", colorscale: [[0, "rgba(128,128,128,.06)"], [1, ACCENT()]] },
    { ...map, z: top, yaxis: "y2", colorscale: [[0, "rgba(128,128,128,.15)"], [1, WARM()]], hoverinfo: "skip", hovertemplate: undefined },
  ], {
    xaxis: { title: { text: "key" }, showgrid: false, ...whole },
    yaxis: { title: { text: "query" }, ...whole, autorange: "reversed", domain: [0, 0.93], showgrid: false },
    yaxis2: { domain: [0.95, 1], showticklabels: false, showgrid: false, ticks: "", zeroline: false },
  }, `Attention of a random head with ${n} tokens and head dimension ${d}: ${found.used.length} columns are used.`);
}

const law = latest(({ n, d, mask, fraction }) => get(`/api/law?length=${n}&mask=${mask}&percent=${Math.round(100 * fraction)}&head_dim=${d}`), show);
const head = latest(async ({ n, d, mask }) => (n > MOST_PICTURED ? null : get(`/api/head?length=${n}&head_dim=${d}&mask=${mask}&seed=${seed}`)), picture);
const both = later((given) => { law(given); head(given); });

restore();
for (const id of ["length", "head_dim", "fraction"]) element(id).oninput = () => both(settings());
element("mask").onchange = () => both(settings());
element("law").onsubmit = (event) => event.preventDefault();
element("redraw").onclick = () => { seed += 1; head(settings()); };
both(settings());
