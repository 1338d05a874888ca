// Who is late: ranks from late to early, those that are alike in one line.

import { of } from "./address.js";
import { fillBar, makeBar } from "./bar.js";
import { byId, element, plain, say } from "./dom.js";
import { percent } from "./number.js";
import { alike, count, kind, kinds, numbers, over, stateOf, useful } from "./ranges.js";
import { Rows } from "./rows.js";

// few ranks have a line each.
const few = 8;

const share = (x) => (Number.isNaN(x) ? "–" : percent(x));
// parts divides a rank's time. Of one that the others wait for, much useful time is nothing good.
const parts = (r, late) =>
  Number.isNaN(useful(r))
    ? null
    : ["useful", ...kinds, ...over.filter((name) => kind(r, name) > 0)].map((name) => ({
        name,
        class: name === "useful" && late ? "late" : name,
        share: name === "useful" ? useful(r) : kind(r, name),
      }));

export class RankTable {
  constructor() {
    this.rows = new Rows(
      byId("rank-table"),
      [
        {
          name: "rank",
          title: "Rank",
          class: "ranks",
          make: () => element("span", {}, element("a"), element("div", { class: "faint" })),
          fill: (made, g) => fillRank(made, g, this.job, this.isLate(g)),
        },
        { name: "useful", title: "Useful", number: true, class: "measured", text: ([r]) => share(useful(r)) },
        {
          name: "bar",
          title: "As a bar",
          unseen: true,
          class: "bars measured",
          make: makeBar,
          fill: (bar, g) => fillBar(bar, parts(g[0], this.isLate(g))),
        },
        ...kinds.map((name) => ({
          name,
          title: name[0].toUpperCase() + name.slice(1),
          number: true,
          class: `detail measured swatched ${name}`,
          text: ([r]) => share(kind(r, name)),
        })),
        { name: "state", title: "State", class: "detail", text: ([r]) => stateOf(r) },
        { name: "node", title: "Node", class: "detail node", text: ([r]) => r.node },
      ],
      { most: 12 },
    );
    byId("fold").addEventListener("change", () => this.show(this.report));
  }

  // isLate says whether a line is of the rank that the others wait for.
  isLate(group) {
    const { late } = this.report.verdict;
    return Boolean(late) && group.some((r) => r.rank === late.rank && (r.dup ?? 0) === (late.dup ?? 0));
  }

  show(report) {
    this.report = report;
    this.job = report.job;
    byId("fold").parentElement.hidden = report.ranks.length <= few;
    const groups =
      report.ranks.length > few && byId("fold").checked ? alike(report.ranks) : report.ranks.map((r) => [r]);
    byId("rank-table").classList.toggle("one-node", report.job.nodes === 1);
    byId("late").classList.toggle("unmeasured", !report.verdict.efficiency);
    this.rows.show(groups, ([r]) => `${r.rank}/${r.dup ?? 0}`);
  }
}

function fillRank(made, group, { jobid, world, user }, late) {
  const [r] = group;
  const address = of({ jobid, world, user, rank: r.rank, dup: r.dup });
  if (made.firstChild.getAttribute("href") !== address) made.firstChild.href = address;
  say(made.firstChild, group.length === 1 && r.dup ? `${r.rank} (dup ${r.dup})` : numbers(group));
  say(made.lastChild, group.length > 1 ? plain(count(group.length)) : late ? "late" : "");
}
