// The jobs of this node: a sentence and a bar each, those that need attention first.

import { of } from "./address.js";
import { sameJob } from "./api.js";
import { fillBar, makeBar } from "./bar.js";
import { byId, element, foreign, plain, say } from "./dom.js";
import { duration } from "./number.js";
import { count } from "./ranges.js";

// From so many jobs on they can be searched; fewer are seen at a glance.
const many = 8;

// longestName is how many characters of a job's name stand in the list.
const longestName = 48;

// inShort leaves the middle of a long name out: its end tells jobs apart as often as its beginning.
const inShort = (name) =>
  name.length > longestName ? `${name.slice(0, longestName / 2)}…${name.slice(1 - longestName / 2)}` : name;

export const keyOf = (j) => JSON.stringify([j.jobid, j.world, j.user]);

// nameOf is what a job is called: its number, and its name or that of its program.
export const nameOf = (j) => [j.jobid, j.name || (j.program ?? "").split("/").at(-1)].filter(Boolean).join(" · ");

// lasted is how long a job has run, to that time.
const lasted = (j, now) => (Date.parse(j.ended ?? now) - Date.parse(j.started)) / 1000;

// about says in short what a job is.
function about({ job, states }, time) {
  const here = Object.entries(states)
    .filter(([state]) => state !== "up")
    .map(([state, n]) => `${n} ${state}`);
  const ranks = job.observed < job.world_size ? `${job.observed} of ${job.world_size} ranks` : count(job.observed);
  const since = job.started ? `${job.ended ? "ended after" : "for"} ${duration(lasted(job, time))}` : "";
  return [job.user, here.length > 0 ? `${ranks} (${here.join(", ")})` : ranks, since].filter(Boolean).join(", ");
}

const shown = new Map(); // of each job its entry

// showJobs shows them as they were at that time; chosen is the one that is looked at, or null.
export function showJobs(jobs, time, chosen) {
  byId("no-jobs").hidden = jobs.length > 0;
  const list = byId("jobs");
  list.hidden = jobs.length === 1 && chosen !== null && sameJob(jobs[0].job, chosen); // all of it stands below
  list.classList.toggle("many", jobs.length > many);
  byId("all-jobs").hidden = jobs.length < 2;
  byId("find").parentElement.hidden = jobs.length <= many;
  const needy = jobs.filter((j) => j.verdict.attention).length;
  say(
    byId("attention"),
    `${needy === 0 ? "None" : needy} of ${jobs.length} jobs ${needy === 1 ? "needs" : "need"} attention`,
  );
  const keys = jobs.map((j) => keyOf(j.job));
  for (const key of [...shown.keys()].filter((k) => !keys.includes(k))) shown.delete(key);
  jobs.forEach((j, i) => {
    if (!shown.has(keys[i])) shown.set(keys[i], makeEntry());
    fillEntry(shown.get(keys[i]), j, time, chosen);
    shown.get(keys[i]).item.hidden = jobs.length > many && !found(j, byId("find").value);
  });
  const order = keys.join("\0");
  if (list.order === order) return;
  list.order = order;
  list.replaceChildren(...keys.map((key) => shown.get(key).item));
}

// found says whether all words of a search are in what is said of a job.
function found({ job, verdict }, search) {
  const text = [nameOf(job), job.user, job.program, verdict.state, verdict.text].join(" ").toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

function makeEntry() {
  const link = element("a", { class: "job" }, foreign(""));
  const small = element("span", { class: "faint" });
  const verdict = element("p", { class: "sentence" }, element("strong", { class: "state" }), " ", foreign(""));
  const bar = makeBar();
  return { link, small, verdict, bar, item: element("li", {}, element("div", {}, link, " ", small), verdict, bar) };
}

function fillEntry(entry, j, time, chosen) {
  entry.item.className = `${stateClass(j.verdict)}${j.job.ended ? " over" : ""}`;
  entry.link.href = of({ jobid: j.job.jobid, world: j.job.world, user: j.job.user });
  say(entry.link.firstChild, plain(inShort(nameOf(j.job))));
  entry.link.title = plain(nameOf(j.job));
  if (chosen && sameJob(j.job, chosen)) entry.link.setAttribute("aria-current", "true");
  else entry.link.removeAttribute("aria-current");
  say(entry.small, plain(about(j, time)));
  showState(entry.verdict, j.verdict);
  fillBar(entry.bar, j.verdict.bar);
}

// showState shows the word of a job's state, and why.
export function showState(where, { state, text }) {
  say(where.firstChild, state);
  say(where.lastChild, plain(text.startsWith(`${state}: `) ? text.slice(state.length + 2) : text));
}

// stateClass is the class of what is coloured by the state of a job.
export const stateClass = (verdict) => "is-" + verdict.state.replaceAll(" ", "-");
