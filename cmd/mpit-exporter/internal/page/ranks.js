// Jobs and their ranks.

import { keyOf, sameRank } from "./api.js";
import { byId, element, foreign, link, plain, say } from "./dom.js";

const jobOf = (r) => JSON.stringify([r.jobid, r.world, r.uid]);

// parametersOf names a rank in the page's address.
export function parametersOf(r) {
  const named = { jobid: r.jobid, world: r.world, user: r.user, rank: r.rank };
  return r.dup ? { ...named, dup: r.dup } : named;
}

// inAddress is the rank that the page's address names, or null.
export function inAddress() {
  const named = new URLSearchParams(location.hash.slice(1));
  if (!named.has("jobid") || !named.has("user") || !/^\d+$/.test(named.get("rank") ?? "")) return null;
  return {
    jobid: named.get("jobid"), world: named.get("world") ?? "", user: named.get("user"), rank: Number(named.get("rank")), dup: Number(named.get("dup") ?? 0) || 0,
  };
}

// grouped is a list of lists of ranks, one for each job and world.
function grouped(ranks) {
  const jobs = new Map();
  for (const r of ranks) {
    if (!jobs.has(jobOf(r))) jobs.set(jobOf(r), []);
    jobs.get(jobOf(r)).push(r);
  }
  return [...jobs.values()];
}

// states counts ranks by their state: "3 up, 1 late".
function states(ranks) {
  const n = new Map();
  for (const r of ranks) n.set(r.state, (n.get(r.state) ?? 0) + 1);
  return [...n].map(([state, count]) => `${count} ${state}`).join(", ");
}

// showJobs fills the table of jobs; chosen is the rank that is looked at, or null.
export function showJobs(ranks, chosen, efficiencies) {
  const jobs = grouped(ranks);
  byId("no-jobs").hidden = jobs.length > 0;
  byId("jobs").hidden = jobs.length === 0;
  const body = byId("jobs").querySelector("tbody");
  const signature = JSON.stringify(jobs.map((j) => jobOf(j[0])));
  if (body.signature !== signature) {
    body.signature = signature;
    body.replaceChildren(...jobs.map(([first]) => {
      const name = link(parametersOf(first), foreign(first.jobid));
      return element("tr", {}, element("th", { scope: "row" }, name), ...Array.from({ length: 6 }, () => element("td")));
    }));
  }
  const current = chosen && ranks.find((r) => sameRank(r, chosen));
  jobs.forEach((job, i) => {
    const [name, ...cells] = body.rows[i].cells;
    const [first] = job;
    const program = first.jobname ? `${first.executable} (${first.jobname})` : first.executable;
    const texts = [first.world, states(job), efficiencies.of(job), first.user, program, `${first.library} ${first.library_version}`.trim()];
    texts.forEach((text, k) => say(cells[k], plain(text)));
    if (current && jobOf(current) === jobOf(first)) name.firstChild.setAttribute("aria-current", "true");
    else name.firstChild.removeAttribute("aria-current");
  });
}

// showRanks fills the list of the ranks of the job that is looked at.
export function showRanks(ranks, chosen) {
  const list = byId("ranks");
  const current = ranks.find((r) => sameRank(r, chosen));
  const job = current ? ranks.filter((r) => jobOf(r) === jobOf(current)) : [chosen];
  const signature = JSON.stringify(job.map(keyOf));
  if (list.signature !== signature) { // else who has it open would lose it
    list.signature = signature;
    list.replaceChildren(...job.map((r) => element("option", { value: keyOf(r) })));
  }
  job.forEach((r, i) => {
    const dup = r.dup ? ` (dup ${r.dup})` : "";
    say(list.options[i], plain(`${r.rank}${dup}: ${r.state ?? "gone"}${r.pid ? `, pid ${r.pid}` : ""}`));
  });
  list.value = keyOf(chosen);
}

// rankOf reads a value of the list.
export function rankOf(value) {
  const [jobid, world, user, rank, dup] = JSON.parse(value);
  return { jobid, world, user, rank, dup };
}

// showAbout says what is known of the rank that is looked at.
export function showAbout(r) {
  const started = r.started ? new Date(r.started).toLocaleString() : "";
  const about = [
    ["State", r.end_reason ? `${r.state} (${r.end_reason})` : r.state], ["Job", r.jobid], ["Job name", r.jobname], ["Partition", r.partition],
    ["World", r.world], ["Ranks in all", r.world_size], ["User", r.user], ["Host", r.host], ["Pid", r.pid], ["Program", r.executable],
    ["Library", `${r.library} ${r.library_version}`.trim()], ["Threads", r.thread_level], ["Since", started],
    ["Job by the kernel's word", r.jobid_check === "unknown" ? "" : r.jobid_check],
  ].filter(([, text]) => text !== undefined && text !== "");
  const list = byId("about");
  const signature = JSON.stringify(about);
  if (list.signature === signature) return;
  list.signature = signature;
  list.replaceChildren(...about.map(([name, text]) => element("div", {}, element("dt", {}, name), element("dd", {}, foreign(text)))));
}
