// Models: heat maps of stored scans, two side by side; a click shows one head.
import { complain, draw, element, get, rows } from "./common.js";

const known = {};

const scan = async (key) => (known[key] ??= await get(`/api/models/${key}`));

function options(select, entries) {
  select.replaceChildren(...entries.map(([value, words]) => new Option(words, value)));
}

async function map(place, key, column) {
  place.hidden = !key;
  if (!key) return;
  const found = await scan(key);
  const heads = Math.max(...found.rows.map((row) => row.head)) + 1;
  const table = found.layers.map((layer) => {
    const line = Array(heads).fill(null);
    for (const row of found.rows) if (row.layer === layer) line[row.head] = row[column];
    return line;
  });
  const values = table.flat().filter((value) => value !== null);
  draw(place, [{ type: "heatmap", z: table, colorscale: "Viridis" }], {
    title: { text: column.replaceAll("_", " ") },
    xaxis: { title: { text: "head" } },
    yaxis: { title: { text: "layer" }, autorange: "reversed" },
  }, `Heat map of ${column.replaceAll("_", " ")}: ${found.layers.length} layers, ${heads} heads, from ${Math.min(...values)} to ${Math.max(...values)}.`);
  place.on("plotly_click", (event) => {
    const { x, y } = event.points[0];
    const row = found.rows.find((one) => one.layer === found.layers[y] && one.head === x);
    element("head-words").textContent = `Layer ${found.layers[y]}, head ${x}`;
    rows(element("head"), Object.entries(row ?? {}).map(([name, value]) => ({
      cells: [name.replaceAll("_", " "), typeof value === "number" ? String(+value.toPrecision(5)) : String(value)],
    })));
  });
}

async function show() {
  try {
    complain(null);
    const column = element("column").value;
    await map(element("map-first"), element("first").value, column);
    await map(element("map-second"), element("second").value, column);
  } catch (error) {
    complain(error);
  }
}

try {
  const scans = await get("/api/models");
  element("none").hidden = scans.length > 0;
  element("choose").hidden = scans.length === 0;
  if (scans.length) {
    const named = scans.map((one) => [one.key, `${one.key} (${one.layers} layers, ${one.heads} heads, ${one.tokens} tokens)`]);
    options(element("first"), named);
    options(element("second"), [["", "nothing"], ...named]);
    const first = await scan(scans[0].key);
    const numeric = Object.entries(first.rows[0]).filter(([name, value]) => typeof value === "number" && name !== "head");
    options(element("column"), numeric.map(([name]) => [name, name.replaceAll("_", " ")]));
    for (const id of ["first", "second", "column"]) element(id).onchange = show;
    await show();
  }
} catch (error) {
  complain(error);
}
