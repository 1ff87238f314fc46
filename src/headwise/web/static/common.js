// What every view needs: requests to this machine, elements, tables, and waiting a moment.

export const element = (id) => document.getElementById(id);

// The documentation site has no server: there the answers lie in a file.
export async function get(address) {
  return window.headwiseStored ? window.headwiseStored(address) : answered(await fetch(address));
}

export async function post(address, body) {
  const options = { method: "POST", headers: { "X-Headwise": "1" } };
  if (body instanceof FormData) options.body = body;
  else {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body ?? {});
  }
  return answered(await fetch(address, options));
}

async function answered(response) {
  const json = (response.headers.get("content-type") || "").includes("json");
  const found = json ? await response.json() : { error: await response.text() };
  if (!response.ok) throw new Error(found.error || found.detail?.[0]?.msg || response.statusText);
  return found;
}

export function complain(error) {
  const place = element("error");
  const lost = error instanceof TypeError ? "The server does not answer. Start headwise serve again." : "";
  place.hidden = !error;
  place.textContent = error ? lost || error.message || String(error) : "";
}

// An element with its text or children; attributes by name.
export function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made[name] = value;
    else if (value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

const numeric = (content) => typeof content === "number" || /^[≥−-]?\s?[\d.,]+\s?[%×kMGT]?$/.test(content);

function cell(tag, content) {
  const node = content instanceof Node;
  const attributes = { class: !node && numeric(content) ? "number" : undefined, scope: tag === "th" ? "col" : undefined };
  return make(tag, attributes, node ? content : String(content));
}

// Tables that are wider than the screen say so.
const watched = new ResizeObserver((seen) => {
  for (const place of new Set(seen.map(({ target }) => target.closest(".scroll")))) place?.classList.toggle("more", place.scrollWidth > place.clientWidth + 1);
});

export function watch(place) {
  for (const each of [place, ...place.children]) watched.observe(each);
  return place;
}

for (const place of document.querySelectorAll(".scroll")) watch(place);

export function rows(table, lines) {
  table.tBodies[0].replaceChildren(...lines.map(({ cells, className, classes }) => {
    const line = make("tr", { class: className });
    cells.forEach((content, place) => {
      const made = cell("td", content);
      if (classes?.[place]) made.classList.add(classes[place]);
      line.append(made);
    });
    return line;
  }));
}

export function columns(table, names, sample = []) {
  const cells = names.map((name, place) => {
    const made = name ? make("th", { scope: "col" }, name) : make("td");
    if (sample[place] !== undefined && numeric(String(sample[place]))) made.className = "number";
    return made;
  });
  table.tHead.replaceChildren(make("tr", {}, ...cells));
}

export function tiles(list, entries) {
  list.replaceChildren(...entries.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

export function options(select, entries) {
  const chosen = select.value;
  select.replaceChildren(...entries.map(([value, words]) => new Option(words, value)));
  if (entries.some(([value]) => String(value) === chosen)) select.value = chosen;
}

// Waits until the hand rests; answers that come too late are dropped by `latest`.
export function later(action, milliseconds = 30) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), milliseconds);
  };
}

export function latest(ask, show) {
  let newest = 0;
  return async (...given) => {
    const own = ++newest;
    try {
      const found = await ask(...given);
      if (own !== newest) return;
      complain(null);
      await show(found, ...given);
    } catch (error) {
      if (own === newest) complain(error);
    }
  };
}

export const short = (number) =>
  number >= 1e9 ? `${(number / 1e9).toPrecision(3)}G`
  : number >= 1e6 ? `${(number / 1e6).toPrecision(3)}M`
  : number >= 1e4 ? `${(number / 1e3).toPrecision(3)}k` : number.toLocaleString("en");
export const plain = (value) => (typeof value === "number" ? String(+value.toPrecision(4)) : String(value ?? "not known"));
