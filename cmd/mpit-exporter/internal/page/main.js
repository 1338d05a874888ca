// The live page: which job is looked at, and when the exporter is asked. It is asked only while somebody can see the
// page, and not again before it has answered.

import { inAddress, note } from "./address.js";
import { Refused, askJobs, askReport, sameJob } from "./api.js";
import { byId, plain, say } from "./dom.js";
import { Job } from "./job.js";
import { keyOf, nameOf, showJobs } from "./jobs.js";
import { clock } from "./number.js";
import { Past } from "./past.js";
import { Variables } from "./variables.js";

// longest is how many milliseconds it waits at most after failures.
const longest = 10000;

const job = new Job();
const variables = new Variables();

const state = {
  jobs: [],
  time: "",
  chosen: null, // the job that is looked at
  past: new Map(), // of each job, as long as it is here
  opened: "", // the job whose variables have been shown at once, where there is nothing else to see
  said: "", // the last state that has been read out
  paused: false,
  failures: 0,
  asking: false,
  again: false,
  timer: 0,
};

// window is over which time figures are.
const window = () => (inAddress().whole ? "0" : "5s");
const interval = () => Number(byId("interval").value) * 1000;

// choose makes the job that the address names the one that is looked at; if it names none, one that needs attention or
// runs, and stays with it as long as it does.
function choose() {
  const named = inAddress();
  const had = state.jobs.find((j) => state.chosen && sameJob(j.job, state.chosen));
  if (named.job) state.chosen = named.job;
  else if (!had || had.job.ended) state.chosen = state.jobs[0]?.job ?? state.chosen;
}

async function askAll() {
  const { jobs, time } = await askJobs(window());
  Object.assign(state, { jobs, time });
  const keys = new Set(state.jobs.map((j) => keyOf(j.job)));
  for (const key of state.past.keys()) if (!keys.has(key)) state.past.delete(key);
  choose();
  const { chosen } = state;
  showJobs(state.jobs, time, chosen);
  byId("live").hidden = false;
  if (!chosen) {
    document.title = "MPI_T exporter";
    return "";
  }
  const report = await askReport(chosen, window());
  if (state.chosen !== chosen) return "";
  if (!report) return `Job ${plain(chosen.jobid)} is not here, or is here no more.`;
  await show(report);
  if (byId("variables-shown").open) await variables.ask();
  return "";
}

async function show(report) {
  const key = keyOf(report.job);
  if (!state.past.has(key)) state.past.set(key, new Past());
  const past = state.past.get(key);
  if (!inAddress().whole) past.add(report);
  byId("job").hidden = false;
  const title = `${report.verdict.state}: job ${plain(nameOf(report.job))} – MPI_T exporter`;
  if (document.title !== title) document.title = title;
  say(byId("at"), `as of ${clock(report.time)}${state.paused ? ", paused" : ""}`);
  const { jobid, world, user } = report.job;
  const first = report.ranks.toSorted((a, b) => a.rank - b.rank)[0];
  variables.look(inAddress().rank ?? (first ? { jobid, world, user, rank: first.rank, dup: first.dup ?? 0 } : null));
  if (variables.rank) variables.showRanks(report.ranks);
  if (state.opened !== key) byId("variables-shown").open ||= !report.verdict.efficiency || inAddress().filter !== "";
  state.opened = key;
  const shown = job.show(report, past);
  tell(report);
  await shown;
}

// tell tells those who don't see the page when what is to be said of the job has changed in kind, not in its figures.
function tell({ job: { jobid }, verdict }) {
  const said = `${jobid} ${verdict.state}`;
  if (state.said !== said) say(byId("said"), plain(`Job ${jobid}: ${byId("verdict").textContent}`));
  state.said = said;
}

// ask asks the exporter now, and again after a while.
async function ask() {
  clearTimeout(state.timer);
  if (state.asking) {
    state.again = true;
    return;
  }
  state.asking = true;
  state.again = false;
  let problem = "";
  try {
    problem = await askAll();
    state.failures = 0;
  } catch (error) {
    state.failures++;
    const failed = error.name === "TimeoutError" ? "it takes too long" : error.message;
    problem =
      error instanceof Refused || error instanceof TypeError || error.name === "TimeoutError"
        ? `The exporter does not answer: ${failed}. ` +
          (state.time ? `The figures are those of ${clock(state.time)}. ` : "") +
          "It is asked again."
        : `This page has failed: ${failed}`;
  }
  state.asking = false;
  say(byId("problem"), problem);
  byId("problem").hidden = problem === "";
  document.body.classList.toggle("stale", state.failures > 0);
  if (state.again) ask();
  else wait();
}

function wait() {
  if (state.paused || document.hidden) return;
  state.timer = setTimeout(
    ask,
    state.failures === 0 ? interval() : Math.min(interval() * 2 ** state.failures, longest),
  );
}

document.addEventListener("visibilitychange", () => {
  clearTimeout(state.timer);
  if (!document.hidden && !state.paused) ask();
});
addEventListener("hashchange", () => {
  const { rank, filter } = inAddress();
  byId("filter").value = filter;
  if (rank) variables.look(rank);
  choose();
  showJobs(state.jobs, state.time, state.chosen);
  ask();
});
byId("rank-table").addEventListener("click", (event) => {
  if (!event.target.closest("a")) return;
  byId("variables-shown").open = true;
  byId("variables").scrollIntoView();
});
byId("variables-shown").addEventListener("toggle", () => {
  if (byId("variables-shown").open && state.chosen) ask();
});
byId("jobs").addEventListener("click", (event) => {
  if (event.target.closest("a")) byId("job").scrollIntoView({ block: "nearest" });
});
byId("find").addEventListener("input", () => showJobs(state.jobs, state.time, state.chosen));
byId("whole").checked = inAddress().whole;
byId("whole").addEventListener("change", () => {
  note("whole", byId("whole").checked ? "1" : "");
  ask();
});
byId("interval").addEventListener("change", () => {
  clearTimeout(state.timer);
  if (!state.asking) wait();
});
byId("pause").addEventListener("click", () => {
  state.paused = !state.paused;
  byId("pause").setAttribute("aria-pressed", String(state.paused));
  document.body.classList.toggle("paused", state.paused);
  clearTimeout(state.timer);
  if (state.paused) say(byId("at"), byId("at").textContent + ", paused");
  else ask();
});

if (!document.hidden) ask();
else byId("live").hidden = false;
