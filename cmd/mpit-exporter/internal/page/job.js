// One job: what is to be said of it, and why.

import { fillBar, makeBar } from "./bar.js";
import { CallTable, Sites, UnderWay } from "./calls.js";
import { byId, element, plain, say, shape } from "./dom.js";
import { Functions } from "./functions.js";
import { nameOf, showState, stateClass } from "./jobs.js";
import { Levels } from "./levels.js";
import { duration, moment, percent } from "./number.js";
import { OverTime } from "./overtime.js";
import { Peers } from "./peers.js";
import { RankTable } from "./ranktable.js";
import { Sizes } from "./sizes.js";

export class Job {
  constructor() {
    this.bar = makeBar();
    byId("bar").prepend(this.bar);
    const overTime = new OverTime(byId("over-time"));
    // What is shown of a report, each under its heading, which goes if there is nothing.
    this.parts = [
      ["under-way", new UnderWay()],
      ["over-time", { show: (report, past) => overTime.show(past, report) }],
      ["functions", new Functions(byId("functions"))],
      [
        "late",
        {
          table: new RankTable(),
          show(report) {
            this.table.show(report);
            return true;
          },
        },
      ],
      ["calls", new CallTable()],
      ["sites", new Sites()],
      ["sizes", new Sizes(byId("sizes"))],
      ["peers", new Peers(byId("peers"))],
      ["levels", new Levels()],
    ];
  }

  // show shows a report, and what has been seen of the job before; it takes several frames, so that none is late.
  async show(report, past) {
    this.showVerdict(report);
    for (const [id, part] of this.parts) {
      await new Promise((done) => {
        const timer = setTimeout(done, 200); // a page that nobody sees has no frames
        requestAnimationFrame(() => {
          clearTimeout(timer);
          done();
        });
      });
      byId(id).hidden = false; // a canvas needs its width
      byId(id).hidden = !part.show(report, past);
      const column = byId(id).parentElement;
      column.classList.toggle(
        "nothing",
        [...column.children].every((part) => part.hidden),
      );
    }
  }

  showVerdict(report) {
    const { job, verdict } = report;
    byId("job").className = stateClass(verdict);
    say(byId("job-title"), plain(`Job ${nameOf(job)}`));
    say(byId("job-about"), plain(about(report)));
    showState(byId("verdict"), verdict);
    byId("bar").hidden = !verdict.bar;
    if (!verdict.bar) return;
    fillBar(this.bar, verdict.bar);
    legend(byId("bar-legend"), verdict.bar, report);
  }
}

// about says what a job is.
function about({ job, time, ranks, left_out: leftOut }) {
  const lasted = job.started ? (Date.parse(job.ended ?? time) - Date.parse(job.started)) / 1000 : NaN;
  return [
    `user ${job.user}`,
    job.world ? `world ${job.world}` : "",
    `${job.observed} of ${job.world_size} ranks`,
    job.nodes === 1 ? (ranks[0]?.node ?? "1 node") : `${job.nodes} nodes`,
    job.library,
    job.started
      ? `began ${moment(job.started)}, ${job.ended ? "ended after" : "for"} ${duration(lasted)}`
      : "",
    job.program,
    leftOut ? `${leftOut} ranks and series are left out` : "",
  ]
    .filter(Boolean)
    .join(" · ");
}

// legend says what a bar's colours are, and over which time.
function legend(list, parts, report) {
  const signature = parts.map((p) => p.name).join();
  if (list.signature !== signature) {
    list.signature = signature;
    list.replaceChildren(
      ...parts.map((p) =>
        element(
          "span",
          {},
          shape(
            "svg",
            { class: "swatch", viewBox: "0 0 1 1", "aria-hidden": "true" },
            shape("rect", { class: p.colour || "idle", width: 1, height: 1 }),
          ),
          element("span"),
        ),
      ),
      element("span", { class: "faint" }),
    );
  }
  parts.forEach((p, i) =>
    say(list.children[i].lastChild, p.name + (parts.length === 1 ? "" : ` ${percent(p.share)}`)),
  );
  say(list.lastChild, report.whole ? "since the job began" : `in the last ${Math.round(report.seconds)} s`);
}
