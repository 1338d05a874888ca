// The live page: what is looked at, and when the exporter is asked. It is asked only while somebody can see the page, for one rank,
// and not again before it has answered.

import { Refused, askCatalogue, askRanks, askValues, sameRank } from "./api.js";
import { byId, say } from "./dom.js";
import { Efficiencies } from "./efficiency.js";
import { inAddress, parametersOf, rankOf, showAbout, showJobs, showRanks } from "./ranks.js";
import { History, chosen, groups } from "./series.js";
import { Table } from "./table.js";
import { Tree, branches } from "./tree.js";

// Milliseconds: how often it is asked which ranks there are, how soon a catalogue again that nobody could give, or that lacks
// variables, and how long to wait at most after failures.
const ranksEvery = 5000;
const catalogueAgain = 30000;
const longest = 30000;

// answering is the states of ranks that can be asked for a catalogue.
const answering = new Set(["up", "busy", "passive", "paused"]);

const table = new Table(byId("values"));
const tree = new Tree(byId("tree"), (branch) => {
  state.names = branch?.variables ?? null;
  showValues();
  tell();
});

const state = {
  ranks: [], ranksAt: -Infinity,
  efficiencies: new Efficiencies(),
  rank: null, // that is looked at
  catalogue: null, catalogueAt: -Infinity,
  values: null,
  history: new History(),
  names: null, // of the variables of the chosen category; null: all
  told: false, // what a rank has has been said
  paused: false, failures: 0, asking: false, again: false, timer: 0,
};

// look makes a rank the one that is looked at.
function look(rank) {
  if (state.rank && rank && sameRank(state.rank, rank)) return;
  Object.assign(state, { rank, catalogue: null, catalogueAt: -Infinity, values: null, history: new History(), names: null, told: false });
  byId("categories").hidden = true;
  showAll();
  ask();
}

function showAll() {
  const { ranks, rank } = state;
  byId("live").hidden = false;
  const title = rank ? `${nameOf(rank)} – MPI_T exporter` : "MPI_T exporter";
  if (document.title !== title) document.title = title;
  showJobs(ranks, rank, state.efficiencies);
  byId("rank").hidden = byId("variables").hidden = !rank;
  if (!rank) return;
  showRanks(ranks, rank);
  showAbout(state.values?.rank ?? ranks.find((r) => sameRank(r, rank)) ?? rank);
  showValues();
}

function showValues() {
  const all = groups(state.catalogue, state.values);
  if (state.values) {
    state.history.add(state.values.time, all);
    say(byId("at"), `as of ${new Date(state.values.time).toLocaleTimeString()}${state.paused ? ", paused" : ""}`);
  }
  const wanted = chosen(all, byId("filter").value, state.names);
  const cut = table.show(wanted, state.history) + (state.values?.cut ?? 0);
  const more = cut > 0 ? `; ${cut} more series are not shown, filter to see them` : "";
  say(byId("count"), state.catalogue || state.values ? `${wanted.length} of ${all.length}${more}` : "asking the rank …");
  if (!state.told && state.values) {
    state.told = true;
    tell();
  }
}

// tell tells those who don't see the page what it shows now, once they have stopped typing.
let telling = 0;
function tell() {
  clearTimeout(telling);
  telling = setTimeout(() => {
    if (state.rank) say(byId("said"), `Rank ${state.rank.rank} of job ${state.rank.jobid}: ${byId("count").textContent} variables shown.`);
  }, 700);
}

function showTree() {
  const roots = branches(state.catalogue?.categories ?? []);
  byId("categories").hidden = roots.length === 0;
  tree.show(roots, state.catalogue?.variables.length ?? 0);
}

// askCatalogueOf asks for the catalogue of the rank that is looked at if it is not there, or values name variables it has not.
async function askCatalogueOf(rank) {
  if (!answering.has(state.values?.rank.state)) return; // nobody can say
  const known = new Set(state.catalogue?.variables.map((v) => v.name));
  const lacks = !state.catalogue || (state.values?.variables.some((v) => !known.has(v.name)) ?? false);
  if (!lacks || performance.now() - state.catalogueAt < catalogueAgain) return;
  state.catalogueAt = performance.now();
  try {
    const catalogue = await askCatalogue(rank);
    if (state.rank !== rank || !catalogue) return;
    state.catalogue = catalogue;
    state.names = null;
    showTree();
  } catch (error) {
    if (!(error instanceof Refused)) throw error; // else its values can be shown meanwhile
  }
}

async function askAll() {
  const here = (rank) => state.ranks.some((r) => sameRank(r, rank));
  if (performance.now() - state.ranksAt >= ranksEvery || !state.rank || !here(state.rank)) {
    state.ranks = await askRanks();
    state.efficiencies.add(state.ranks);
    state.ranksAt = performance.now();
    if (!state.rank) state.rank = inAddress() ?? state.ranks[0] ?? null;
    showAll();
  }
  const { rank } = state;
  if (!rank) return "";
  if (!here(rank)) return `${nameOf(rank)} is not here, or is here no more.`;
  try {
    const values = await askValues(rank);
    if (state.rank !== rank) return "";
    if (values) state.values = values;
  } catch (error) {
    if (!(error instanceof Refused && error.status === 404)) throw error;
    state.ranksAt = -Infinity; // it has just left
  }
  showAll();
  await askCatalogueOf(rank);
  if (state.rank === rank) showAll();
  return "";
}

const nameOf = (rank) => `Rank ${rank.rank} of job ${rank.jobid}`;

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
    problem = error instanceof Refused || error instanceof TypeError || error.name === "TimeoutError"
      ? `The exporter does not answer: ${failed}. It is asked again.` : `This page has failed: ${failed}`;
  }
  state.asking = false;
  say(byId("problem"), problem);
  byId("problem").hidden = problem === "";
  if (state.again) ask();
  else wait();
}

function wait() {
  if (state.paused || document.hidden) return;
  const interval = Number(byId("interval").value) * 1000;
  state.timer = setTimeout(ask, state.failures === 0 ? interval : Math.min(interval * 2 ** state.failures, longest));
}

document.addEventListener("visibilitychange", () => {
  clearTimeout(state.timer);
  if (!document.hidden && !state.paused) ask();
});
addEventListener("hashchange", () => {
  const named = inAddress();
  if (named) look(named);
});
byId("ranks").addEventListener("change", (event) => {
  location.hash = new URLSearchParams(parametersOf(rankOf(event.target.value)));
});
byId("interval").addEventListener("change", () => {
  clearTimeout(state.timer);
  if (!state.asking) wait();
});
byId("pause").addEventListener("click", () => {
  state.paused = !state.paused;
  byId("pause").setAttribute("aria-pressed", String(state.paused));
  clearTimeout(state.timer);
  if (state.paused) showValues();
  else ask();
});
byId("filter").addEventListener("input", () => {
  showValues();
  tell();
});

if (!document.hidden) ask();
else byId("live").hidden = false;
