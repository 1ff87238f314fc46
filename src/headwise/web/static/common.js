// What every view needs: requests to this machine, figures, tables, and following a job.

export const element = (id) => document.getElementById(id);

export async function get(address) {
  return answered(await fetch(address));
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
  place.hidden = !error;
  place.textContent = error ? error.message || String(error) : "";
}

export function rows(table, lines) {
  const body = table.tBodies[0];
  body.replaceChildren(...lines.map(({ cells, className }) => {
    const line = document.createElement("tr");
    if (className) line.className = className;
    for (const content of cells) {
      const cell = line.insertCell();
      if (content instanceof Node) cell.append(content);
      else cell.textContent = content;
      if (typeof content === "number" || /^[\d.,%−-]+$/.test(content)) cell.className = "number";
    }
    return line;
  }));
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function draw(place, data, layout, alternative) {
  place.setAttribute("aria-label", alternative);
  // Powers of two on logarithmic axes: head dimensions are often those.
  const ticks = (given) => (given?.type === "log" ? { dtick: Math.log10(2) } : {});
  const axis = { gridcolor: colour("--line"), zerolinecolor: colour("--line") };
  const styled = {
    ...layout,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", color: colour("--text") },
    margin: { l: 60, r: 20, t: 50, b: 50 },
    legend: { orientation: "h", y: -0.25 },
    xaxis: { ...axis, ...ticks(layout.xaxis), ...layout.xaxis },
    yaxis: { ...axis, ...layout.yaxis },
  };
  Plotly.react(place, data, styled, { responsive: true, displaylogo: false });
}

export function follow(job, { progress, cancel, done }) {
  const events = new EventSource(`/api/jobs/${job}/events`);
  cancel.hidden = false;
  cancel.onclick = () => post(`/api/jobs/${job}/cancel`).catch(complain);
  const end = (words) => {
    events.close();
    cancel.hidden = true;
    progress.textContent = words;
  };
  events.onmessage = (event) => {
    const state = JSON.parse(event.data);
    if (state.state === "waiting") {
      progress.textContent = `Waiting: ${state.ahead} other ${state.ahead === 1 ? "job is" : "jobs are"} first.`;
    } else if (state.state === "running") {
      const left = state.seconds_left === null ? "" : `, about ${Math.ceil(state.seconds_left)} s left`;
      const steps = state.total ? ` ${state.done} of ${state.total}` : "";
      progress.textContent = `${state.task || "Working"}…${steps}${left}`;
    } else if (state.state === "done") {
      end("");
      done(state.result);
    } else if (state.state === "cancelled") end("Cancelled.");
    else {
      end("");
      complain(new Error(state.error));
    }
  };
  events.onerror = () => end("The server does not answer. What is stored is kept; start it again.");
}

export function later(action, milliseconds = 60) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), milliseconds);
  };
}

export const short = (number) =>
  number >= 1e9 ? `${(number / 1e9).toPrecision(3)}B`
  : number >= 1e6 ? `${(number / 1e6).toPrecision(3)}M`
  : number >= 1e4 ? `${(number / 1e3).toPrecision(3)}k` : String(number);
