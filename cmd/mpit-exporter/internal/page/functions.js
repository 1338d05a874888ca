// Functions × ranks: the share of each rank's time in the calls that take most.

import { Heat } from "./heat.js";
import { percent } from "./number.js";
import { numbers, observed } from "./ranges.js";

const mostFunctions = 10;

// leastScale is the share that the strongest colour stands for at least: where little time is spent, all is pale.
const leastScale = 0.25;

// nameOf is a function and what it is called on.
export const nameOf = (c) => (c.object ? `${c.function} on ${c.object}` : c.function);

export class Functions {
  constructor(figure) {
    this.heat = new Heat(figure, {
      title: "Functions by rank",
      ramp: "calls",
      low: "0 %",
      high: "100 % of the rank's time",
      most: 40,
      columns: [
        { name: "function", title: "Function", text: (x) => nameOf(x.call) },
        { name: "ranks", title: "Ranks", text: (x) => numbers(x.ranks) },
        { name: "share", title: "Share of their time", number: true, text: (x) => percent(x.share) },
      ],
    });
  }

  // show shows a report's calls; false: it has none.
  show(report) {
    const calls = (report.calls ?? []).filter((c) => c.by_rank && c.seconds > 0).slice(0, mostFunctions);
    if (calls.length === 0) return false;
    const ranks = report.ranks
      .map((r, at) => ({ ...r, at }))
      .sort((a, b) => a.rank - b.rank || (a.dup ?? 0) - (b.dup ?? 0));
    const share = (c, r) => Math.min(c.by_rank[r.at] / observed(r), 1);
    let most = leastScale;
    for (const c of calls) for (const r of ranks) if (share(c, r) > most) most = share(c, r);
    const late = ranks.findIndex((r) => r.rank === report.verdict.late?.rank);
    const all = ranks.map((_, column) => column);
    const feet =
      ranks.length <= 8
        ? all
        : [0, ranks.length - 1]
            .filter((c) => late < 0 || Math.abs(c - late) > ranks.length / 12)
            .concat(late < 0 ? [] : late);
    this.heat.show(
      {
        rows: calls.length,
        columns: ranks.length,
        typical: (i) => calls[i].share / most,
        each: (put) => calls.forEach((c, i) => ranks.forEach((r, column) => put(i, column, share(c, r) / most))),
        rowName: (i) => nameOf(calls[i]),
        feet: feet.map((column) => ({
          column,
          text: column === 0 ? `rank ${ranks[0].rank}` : `${ranks[column].rank}`,
        })),
        text: (i, column) =>
          `${nameOf(calls[i])}: ${percent(share(calls[i], ranks[column]))} of the time of rank ${ranks[column].rank}`,
      },
      {
        caption: sentence(calls[0], ranks, share),
        high: `${percent(most)} of the rank's time`,
        table: () => ({ things: folded(calls, ranks, share), key: (x) => x.key }),
      },
    );
    return true;
  }
}

// sentence says in which ranks the first call takes most and least of the time.
function sentence(call, ranks, share) {
  const by = ranks.filter((r) => !Number.isNaN(share(call, r))).sort((a, b) => share(call, b) - share(call, a));
  if (by.length === 0) return "";
  const [most, least] = [by[0], by.at(-1)];
  const of = `${nameOf(call)}: ${percent(share(call, most))} of the time of`;
  if (by.length === 1 || share(call, most) - share(call, least) < 0.05)
    return `${of} ${by.length === 1 ? `rank ${most.rank}` : "each rank"}.`;
  return `${of} rank ${most.rank}, ${percent(share(call, least))} of rank ${least.rank}.`;
}

// folded puts together, for each call, ranks of which it has nearly the same share.
function folded(calls, ranks, share) {
  return calls.flatMap((call, i) => {
    const groups = [];
    for (const r of ranks) {
      const s = share(call, r);
      if (Number.isNaN(s)) continue;
      const same = groups.find((g) => Math.abs(g.share - s) <= 0.03);
      if (same) same.ranks.push(r);
      else groups.push({ call, share: s, ranks: [r] });
    }
    return groups.sort((a, b) => b.share - a.share).map((g, k) => ({ ...g, key: `${i}/${k}/${nameOf(call)}` }));
  });
}
