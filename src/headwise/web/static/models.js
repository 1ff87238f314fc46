// Models: heat maps of stored scans, two side by side; a click shows one head.
import { columns, complain, element, get, latest, options, plain, rows } from "./common.js";
import { ACCENT, draw, undraw } from "./figures.js";

const known = {};
let scans = [];

const scan = async (key) => (known[key] ??= await get(`/api/models/${encodeURIComponent(key)}`));
const named = (key) => {
  const found = scans.find((one) => one.key === key);
  if (!found) return key;
  return scans.filter((one) => one.name === found.name).length > 1 ? `${found.name}, ${plain(found.tokens)} tokens` : found.name;
};
// Places are whole numbers: without a step of at least 1, few layers have ticks between them.
const places = (count, most) => ({ tick0: 0, dtick: Math.ceil(count / most), tickformat: "d" });
const title = (found, column) => found.columns.find((one) => one.name === column)?.title ?? column;

async function map(figure, key, column) {
  figure.hidden = !key;
  if (!key) return undraw(figure);
  const found = await scan(key);
  const heads = Math.max(...found.rows.map((row) => row.head)) + 1;
  const place = new Map(found.layers.map((layer, index) => [layer, index]));
  const table = found.layers.map(() => Array(heads).fill(null));
  for (const row of found.rows) table[place.get(row.layer)][row.head] = row[column];
  const values = table.flat().filter((value) => value !== null && value !== undefined);
  const [least, most] = values.length ? [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))] : ["nothing", "nothing"];
  // From 0 to the most there can be, as in the report: otherwise 106 and 107 look opposite.
  const top = found.columns.find((one) => one.name === column)?.top ?? 1;
  const plot = await draw(figure, [{ type: "heatmap", z: table, zmin: 0, zmax: top, colorscale: "Viridis", colorbar: { thickness: 12, outlinewidth: 0 },
    hovertemplate: "layer %{y}, head %{x}: %{z}<extra></extra>" }], {
    title: { text: `${named(key)}: ${title(found, column)}` },
    xaxis: { title: { text: "head" }, showgrid: false, ...places(heads, 12) },
    yaxis: { title: { text: "layer" }, autorange: "reversed", showgrid: false, ...places(found.layers.length, 16) },
  }, `${named(key)}: ${title(found, column)}, for ${found.layers.length} layers of ${heads} heads, from ${plain(least)} to ${plain(most)}; colours from 0 to ${plain(top)}. Tokens: ${plain(found.rows[0].tokens)}.`);
  plot.removeAllListeners("plotly_click");
  plot.on("plotly_click", ({ points: [{ x, y }] }) => {
    element("which").value = key;
    choices(found.layers[y], x).then(() => element("head-title").focus());
  });
}

async function choices(layer, head) {
  const found = await scan(element("which").value);
  options(element("layer"), found.layers.map((name, index) => [name, `${index}: ${name}`]));
  if (layer !== undefined) element("layer").value = layer;
  const rows = found.rows.filter((row) => row.layer === element("layer").value);
  options(element("head"), rows.map((row) => [row.head, String(row.head)]));
  if (head !== undefined) element("head").value = head;
  return one();
}

const one = latest(async () => {
  const key = element("which").value, layer = element("layer").value, head = element("head").value;
  const found = await scan(key);
  const row = found.rows.find((each) => each.layer === layer && String(each.head) === head);
  const given = new URLSearchParams({ layer, head });
  return { key, row, found, picture: await get(`/api/models/${encodeURIComponent(key)}/picture?${given}`) };
}, ({ key, row, found, picture }) => {
  const what = `${named(key)}, layer ${found.layers.indexOf(row.layer)}, head ${row.head}`;
  element("head-title").textContent = what;
  element("head-words").textContent = `${plain(row.coarse_rank)} of its ${plain(row.tokens)} singular values are at least 0.01; its queries and keys use ${plain(row.query_key_rank)} of ${plain(row.head_dim)} dimensions.`;
  rows(element("numbers"), Object.entries(row).map(([name, value]) => ({ cells: [name.replaceAll("_", " "), plain(value)] })));
  for (const id of ["spectrum", "pattern"]) element(id).hidden = !picture.pattern;
  if (!picture.pattern) {
    element("head-words").textContent += " Its spectrum and pattern were not stored: the scan is older than this page, or the sequence is too long to form the matrix.";
    return;
  }
  draw(element("spectrum"), [{ x: picture.places, y: picture.spectrum, mode: "lines+markers", name: "singular value", line: { color: ACCENT() } }], {
    title: { text: "Spectrum" },
    xaxis: { title: { text: "place" }, type: "log", base: 10, dtick: undefined },
    yaxis: { title: { text: "singular value" }, type: "log", exponentformat: "power" },
  }, `Singular values of the attention matrix of ${what}, from ${plain(picture.spectrum[0])} down to ${plain(picture.spectrum.at(-1))}.`);
  draw(element("pattern"), [{ type: "heatmap", z: picture.pattern, showscale: false, colorscale: [[0, "rgba(128,128,128,.06)"], [0.25, ACCENT()], [1, ACCENT()]],
    hovertemplate: "queries %{y}, keys %{x}: %{z}<extra></extra>" }], {
    title: { text: "Attention" },
    xaxis: { title: { text: "keys, first to last" }, showticklabels: false, showgrid: false },
    yaxis: { title: { text: "queries, first to last" }, autorange: "reversed", showticklabels: false, showgrid: false },
  }, `Attention of ${what} on the first sequence, ${picture.tokens.join(" by ")} tokens in ${picture.pattern.length} by ${picture.pattern[0].length} blocks. Dark blocks of keys receive most of the attention of a block of queries.`);
});

async function show() {
  try {
    complain(null);
    const first = element("first").value, second = element("second").value;
    const found = await scan(first);
    options(element("column"), found.columns.map(({ name, title: words }) => [name, words]));
    const column = element("column").value;
    history.replaceState(null, "", `?${new URLSearchParams({ first, second, column })}`);
    options(element("which"), [first, second].filter((key, place, all) => key && all.indexOf(key) === place).map((key) => [key, named(key)]));
    await Promise.all([map(element("map-first"), first, column), map(element("map-second"), second, column)]);
    element("one").hidden = false;
    await choices();
  } catch (error) {
    complain(error);
  }
}

function restore() {
  const given = new URLSearchParams(location.search);
  for (const id of ["first", "second"]) if (scans.some((one) => one.key === given.get(id))) element(id).value = given.get(id);
  return given.get("column");
}

async function reductions() {
  const found = await get("/api/reductions");
  element("reductions").hidden = !found.rows.length;
  columns(element("reduced"), found.columns, found.rows[0]);
  rows(element("reduced"), found.rows.map((cells) => ({ cells })));
}

try {
  scans = await get("/api/models");
  element("none").hidden = scans.length > 0;
  element("choose").hidden = scans.length === 0;
  if (scans.length) {
    const listed = scans.map((one) => [one.key, `${one.name} (${one.layers} layers, ${one.heads} heads, ${plain(one.tokens)} tokens)`]);
    options(element("first"), listed);
    options(element("second"), [["", "nothing"], ...listed]);
    const column = restore();
    const first = await scan(element("first").value);
    options(element("column"), first.columns.map(({ name, title: words }) => [name, words]));
    if (first.columns.some(({ name }) => name === column)) element("column").value = column;
    for (const id of ["first", "second", "column"]) element(id).onchange = show;
    element("which").onchange = () => choices();
    element("layer").onchange = () => choices(element("layer").value);
    element("head").onchange = one;
    await show();
  }
  await reductions();
} catch (error) {
  complain(error);
}
