// Follow a job: its progress by server-sent events, a bar, time left, and a way to stop it.
import { complain, make, post } from "./common.js";

const time = (seconds) =>
  seconds < 90 ? `about ${Math.max(1, Math.round(seconds))} s left`
  : seconds < 5400 ? `about ${Math.round(seconds / 60)} min left` : `about ${(seconds / 3600).toFixed(1)} h left`;

export function words(state) {
  if (state.stopping) return "Stopping…";
  if (state.state === "waiting") return `Waiting: ${state.ahead} other ${state.ahead === 1 ? "job is" : "jobs are"} first.`;
  const steps = state.total ? ` ${state.done} of ${state.total}` : "";
  const left = state.seconds_left === null ? "" : `, ${time(state.seconds_left)}`;
  const task = state.task || "working";
  return `${task[0].toUpperCase()}${task.slice(1)}…${steps}${left}`;
}

export function follow(job, { progress, cancel, done, failed = complain, over = () => {} }) {
  const events = new EventSource(`/api/jobs/${encodeURIComponent(job)}/events`);
  const text = make("p"), bar = make("progress", { "aria-label": "Progress" });
  progress.replaceChildren(text, bar);
  cancel.hidden = false;
  cancel.disabled = false;
  cancel.onclick = () => {
    cancel.disabled = true;
    post(`/api/jobs/${job}/cancel`).catch(complain);
  };
  const end = (told) => {
    events.close();
    cancel.hidden = true;
    progress.replaceChildren(told ? make("p", {}, told) : "");
    over();
  };
  events.onmessage = (event) => {
    const state = JSON.parse(event.data);
    if (state.state === "waiting" || state.state === "running") {
      text.textContent = words(state);
      if (state.total) {
        bar.max = state.total;
        bar.value = state.done;
      }
    } else if (state.state === "done") {
      end("");
      done(state.result);
    } else if (state.state === "cancelled") end("Stopped. What was computed is kept.");
    else {
      end("");
      failed(new Error(state.error));
    }
  };
  events.onerror = () => {
    if (events.readyState === EventSource.CLOSED) end("The server was started again, so this job is gone. What was stored is kept.");
    else text.textContent = "The server does not answer. Start headwise serve again: what is stored is kept.";
  };
  return end;
}
