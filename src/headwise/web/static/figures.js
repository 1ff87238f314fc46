// Figures: plotly draws them; a caption and a table of their numbers say the same in text.
import { make } from "./common.js";

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const drawn = new Map();

export const ACCENT = () => colour("--accent");
export const WARM = () => colour("--warm");
export const QUIET = () => colour("--quiet");

// plotly is 4 MB: the page is there before it is.
const ready = new Promise((done) => {
  const look = () => (window.Plotly ? done() : setTimeout(look, 20));
  look();
});

// The colours of published figures, and what replaces them on a dark ground.
const LIGHTER = { "#1d3557": "#8ab4f0", "#a4243b": "#ff8d9b", "#3f7d20": "#8fd07c", "#7b5ea7": "#c3a6f0", "#4c8f9c": "#7fd0de", "#d98324": "#f2a65e" };
const dark = matchMedia("(prefers-color-scheme: dark)");

function adapted(data, narrow) {
  const words = dark.matches ? JSON.stringify(data).replace(/#[0-9a-f]{6}/g, (found) => LIGHTER[found] ?? found) : null;
  const traces = words ? JSON.parse(words) : data;
  // A narrow legend names curves once; their published values are hollow, their law is dotted.
  return narrow ? traces.map((trace) => (/\((published|law)\)$/.test(trace.name ?? "") ? { ...trace, showlegend: false } : trace)) : traces;
}

const powers = (given) => (given?.type === "log" ? { dtick: Math.log10(2) } : {});

// Without this, logarithmic axes label ticks between powers of ten by their first digit alone.
function heights(data, given) {
  const known = given?.type === "log" ? data.flatMap((trace) => trace.y ?? []).filter((y) => y > 0) : [];
  if (!known.length) return {};
  const decades = Math.log10(Math.max(...known) / Math.min(...known));
  return { dtick: decades > 2 ? 1 : decades > 1 ? Math.log10(4) : Math.log10(2), tickformat: ".2~g" };
}

function styled(data, layout, narrow) {
  const axis = { gridcolor: colour("--line"), zerolinecolor: colour("--line"), linecolor: colour("--line"), automargin: true };
  const title = layout.title?.text ?? "";
  // On a narrow screen every second power of two would overlap the next.
  const ticks = (given) => (narrow && given?.type === "log" && given.base !== 10 ? { dtick: Math.log10(4) } : powers(given));
  return {
    ...layout,
    title: { text: title, x: 0, xanchor: "left", xref: "paper", font: { size: narrow ? 14 : 16 } },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", color: colour("--text") },
    // Room for the buttons, which would cover the figure.
    margin: { l: 10, r: 10, t: title ? 46 : 34, b: 60 },
    legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", x: 0, font: { size: narrow ? 10 : 12 } },
    hoverlabel: { font: { family: "system-ui, sans-serif" } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--quiet"), activecolor: colour("--accent") },
    xaxis: { ...axis, ...ticks(layout.xaxis), ...layout.xaxis },
    yaxis: { ...axis, ...heights(data, layout.yaxis), ...layout.yaxis },
  };
}

function table(data, layout) {
  const curves = data.filter((trace) => Array.isArray(trace.x) && Array.isArray(trace.y) && !trace.z && trace.x.length);
  if (!curves.length) return null;
  const places = [...new Set(curves.flatMap((trace) => trace.x))].sort((a, b) => a - b);
  const at = curves.map((trace) => new Map(trace.x.map((x, place) => [x, trace.y[place]])));
  const words = (value) => (value === undefined || value === null ? "" : String(+Number(value).toPrecision(4)));
  const line = (tag, cells, first) => make("tr", {}, ...cells.map((text, place) => make(place || first ? tag : "th", { scope: first ? "col" : place ? undefined : "row", class: "number" }, text)));
  return make("table", {},
    make("thead", {}, line("th", [layout.xaxis?.title?.text ?? "x", ...curves.map((trace) => trace.name ?? layout.yaxis?.title?.text ?? "y")], true)),
    make("tbody", {}, ...places.map((x) => line("td", [words(x), ...at.map((known) => words(known.get(x)))], false))));
}

export async function draw(figure, data, layout, alternative) {
  drawn.set(figure, [data, layout, alternative]);
  let [plot, caption, numbers] = figure.children;
  if (!plot) {
    plot = make("div", { class: "plot" });
    caption = make("figcaption");
    numbers = make("details", {}, make("summary", {}, "Numbers of this figure"));
    figure.append(plot, caption, numbers);
  }
  caption.textContent = alternative;
  numbers.hidden = !table(data, layout);
  const fill = () => {
    while (numbers.children.length > 1) numbers.lastChild.remove();
    if (numbers.open) numbers.append(make("div", { class: "scroll", role: "region", "aria-label": "Numbers of this figure", tabindex: "0" }, table(...drawn.get(figure).slice(0, 2))));
  };
  numbers.ontoggle = fill;
  fill();
  await ready;
  const narrow = figure.clientWidth < 460;
  await Plotly.react(plot, adapted(data, narrow), styled(data, layout, narrow), { responsive: true, displaylogo: false, displayModeBar: narrow ? false : "hover" });
  // A plot that is drawn again keeps its width, though a figure may have come or gone beside it.
  if (Math.abs(plot.querySelector("svg.main-svg").clientWidth - plot.clientWidth) > 1) await Plotly.Plots.resize(plot);
  // The caption and the table say what the drawing shows; the buttons that zoom stay reachable.
  for (const svg of plot.querySelectorAll("svg.main-svg")) svg.setAttribute("aria-hidden", "true");
  for (const button of plot.querySelectorAll(".modebar-btn")) button.setAttribute("aria-label", button.dataset.title ?? "tool");
  return plot;
}

export function undraw(figure) {
  if (figure.firstChild && window.Plotly) Plotly.purge(figure.firstChild);
  drawn.delete(figure);
  figure.replaceChildren();
}

dark.addEventListener("change", () => {
  for (const [figure, given] of drawn) if (figure.isConnected) draw(figure, ...given);
});
