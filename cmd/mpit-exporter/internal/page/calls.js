// Calls by their share of time, the places that wait most, and calls under way.

import { inAddress, note } from "./address.js";
import { askSites } from "./api.js";
import { fillBar, makeBar } from "./bar.js";
import { byId, element, foreign, plain, say } from "./dom.js";
import { keyOf } from "./jobs.js";
import { duration, often, percent, show } from "./number.js";
import { count, isOver, numbers } from "./ranges.js";
import { Rows } from "./rows.js";

// what shows a function and the object that it is called on.
const what = (title) => ({
  name: "function",
  title,
  class: "call",
  make: () =>
    element(
      "span",
      {},
      foreign("", { class: "name" }),
      element("span", { class: "faint" }, " on "),
      foreign("", { class: "object" }),
    ),
  fill: (made, c) => {
    const [name, on, object] = made.children;
    say(name, plain(c.function));
    say(object, plain(c.object ?? ""));
    on.hidden = !c.object;
  },
});

export class CallTable {
  constructor() {
    this.rows = new Rows(
      byId("call-table"),
      [
        { ...what("Function"), by: (c) => c.function },
        { name: "share", title: "Share", number: true, by: (c) => c.share, text: (c) => percent(c.share) },
        {
          name: "bar",
          title: "Share as a bar",
          unseen: true,
          class: "bars detail",
          make: makeBar,
          fill: (bar, c) => fillBar(bar, [{ name: "of the time", class: "collective", share: Math.min(c.share, 1) }]),
        },
        {
          name: "calls",
          title: "Calls/s",
          number: true,
          by: (c) => c.calls / c.over,
          text: (c) => often(c.calls / c.over),
        },
        {
          name: "mean",
          title: "Mean",
          number: true,
          by: (c) => c.seconds / c.calls || 0,
          text: (c) => duration(c.seconds / c.calls),
        },
        {
          name: "bytes",
          title: "Bytes a call",
          number: true,
          class: "detail",
          by: bytes,
          text: (c) => (bytes(c) > 0 ? show(bytes(c), "By") : "–"),
        },
        { name: "most", title: "Most in rank", number: true, by: (c) => c.most_rank, text: (c) => `${c.most_rank}` },
      ],
      { most: 10, sort: inAddress().sort, sorted: (by) => note("sort", by) },
    );
  }

  show(report) {
    this.rows.show(
      (report.calls ?? []).filter((c) => c.calls > 0 || c.seconds > 0).map((c) => ({ ...c, over: report.seconds })),
      (c) => JSON.stringify([c.function, c.kind, c.object]),
    );
    return (report.calls ?? []).length > 0;
  }
}

// sitesApart is how many milliseconds old the sites may be.
const sitesApart = 10000;

// codeAt is code that has no name.
const codeAt = ({ module, offset }) =>
  module ? `${module.split("/").at(-1)}+0x${(offset ?? 0).toString(16)}` : "";

// Sites are the places in the program where ranks wait most, of a job that counts them.
export class Sites {
  constructor() {
    this.rows = new Rows(byId("site-table"), [
      { name: "waited", title: "Waited", number: true, text: (s) => duration(s.waited_seconds) },
      { name: "calls", title: "Calls", number: true, text: (s) => show(s.calls) },
      what("Function"),
      { name: "from", title: "Called from", text: (s) => plain(codeAt(s)) },
    ]);
  }

  // show shows what was found last: all ranks are asked, and nothing else waits for them.
  show(report) {
    const key = keyOf(report.job);
    if (this.key !== key) Object.assign(this, { key, asked: 0, sites: [] });
    const answers = !report.job.ended && report.ranks.every((r) => r.state === "up");
    if (answers && Date.now() - this.asked >= sitesApart) {
      this.asked = Date.now();
      askSites(report.job).then(
        (sites) => {
          if (this.key === key) this.sites = sites;
        },
        () => {}, // the page says already that the exporter does not answer
      );
    }
    this.rows.show(this.sites, (s) => JSON.stringify([s.function, s.kind, s.object, s.module, s.offset]));
    return this.sites.length > 0;
  }
}

// bytes is what one call moves, in the direction in which it moves most.
const bytes = (c) => (c.calls > 0 ? Math.max(0, ...Object.values(c.bytes ?? {})) / c.calls : 0);

export class UnderWay {
  constructor() {
    this.rows = new Rows(
      byId("under-way-table"),
      [
        { name: "for", title: "For", text: (g) => (g.function ? duration(Math.floor(g.longest)) : "–") },
        what("Call"),
        {
          name: "ranks",
          title: "Ranks",
          make: () => element("span", {}, "", element("div", { class: "faint" })),
          fill: (made, g) => {
            if (made.firstChild.data !== numbers(g.ranks)) made.firstChild.data = numbers(g.ranks);
            say(made.lastChild, g.ranks.length > 1 ? count(g.ranks.length) : "");
          },
        },
        { name: "from", title: "Called from", class: "detail", text: (g) => g.from },
      ],
      { most: 12 },
    );
  }

  // show shows where ranks are that have been in a call for longer than a second, and which ones are in none; false:
  // all are in none.
  show(report) {
    const groups = new Map();
    const ended = report.ranks.every(isOver);
    for (const r of report.ranks) {
      if (isOver(r) && !(ended && r.long)) continue;
      const from = r.long ? (r.place ?? codeAt(r.long)) : "";
      const silent = r.state === "late";
      const key = JSON.stringify([silent, r.long?.function, r.long?.kind, r.long?.object, from]);
      if (!groups.has(key))
        groups.set(key, {
          function: r.long?.function,
          object: r.long?.object,
          from,
          silent,
          key,
          longest: 0,
          ranks: [],
        });
      const group = groups.get(key);
      group.ranks.push(r);
      group.longest = Math.max(group.longest, r.running_seconds ?? 0);
    }
    const list = [...groups.values()].sort(
      (a, b) => Boolean(b.function) - Boolean(a.function) || b.ranks.length - a.ranks.length,
    );
    if (!list.some((g) => g.function)) return false;
    say(byId("under-way-title"), report.job.ended ? "Calls under way at the end" : "Calls under way");
    this.rows.show(
      list.map((g) => ({
        ...g,
        function: g.function ?? (g.silent ? "(does not answer)" : "(in no long call)"),
        longest: g.function ? g.longest : NaN,
      })),
      (g) => g.key,
    );
    return true;
  }
}
