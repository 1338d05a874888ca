// The variables of one rank: which rank, its table with the tree of categories, and when the exporter is asked for
// them.

import { inAddress, note, of } from "./address.js";
import { Refused, askCatalogue, askValues, sameRank } from "./api.js";
import { byId, element, foreign, plain, say } from "./dom.js";
import { moment } from "./number.js";
import { stateOf } from "./ranges.js";
import { History, chosen, groups } from "./series.js";
import { Tree, branches } from "./tree.js";
import { ValueTable } from "./valuetable.js";

// Milliseconds: how soon a catalogue is asked for again that nobody could give, or that lacks variables.
const catalogueAgain = 30000;

// answering is the states of ranks that can be asked for a catalogue.
const answering = new Set(["up", "busy", "passive", "paused"]);

const keyOf = (r) => `${r.rank}/${r.dup ?? 0}`;

export class Variables {
  constructor() {
    this.rank = null; // that is looked at
    this.telling = 0;
    this.table = new ValueTable(byId("values"));
    this.tree = new Tree(byId("tree"), (branch) => {
      this.names = branch?.variables ?? null;
      this.show();
      this.tell();
    });
    const filter = byId("filter");
    filter.value = inAddress().filter;
    filter.addEventListener("input", () => {
      note("filter", filter.value);
      this.show();
      this.tell();
    });
    const list = byId("ranks");
    list.addEventListener("change", () => {
      const [rank, dup] = list.value.split("/").map(Number);
      location.hash = of({ ...this.rank, rank, dup });
    });
  }

  // look makes a rank the one that is looked at; null: none.
  look(rank) {
    if (rank && this.rank && sameRank(rank, this.rank)) return;
    Object.assign(this, {
      rank,
      catalogue: null,
      catalogueAt: -Infinity,
      values: null,
      history: new History(),
      names: null,
      told: false,
    });
    byId("categories").hidden = true;
    byId("variables").hidden = !rank;
    if (rank) this.show();
  }

  // showRanks fills the list of the ranks of the job.
  showRanks(ranks) {
    const list = byId("ranks");
    const sorted = ranks.toSorted((a, b) => a.rank - b.rank || (a.dup ?? 0) - (b.dup ?? 0));
    if (!sorted.some((r) => keyOf(r) === keyOf(this.rank))) sorted.push(this.rank);
    const signature = sorted.map(keyOf).join();
    if (list.signature !== signature) {
      // else who has it open would lose it
      list.signature = signature;
      list.replaceChildren(...sorted.map((r) => element("option", { value: keyOf(r) })));
    }
    sorted.forEach((r, i) =>
      say(
        list.options[i],
        plain(
          `${r.rank}${r.dup ? ` (dup ${r.dup})` : ""}: ${r.state ? stateOf(r) : "gone"}` +
            (r.pid ? `, pid ${r.pid}` : ""),
        ),
      ),
    );
    list.value = keyOf(this.rank);
  }

  // ask asks for what the rank has now.
  async ask() {
    const { rank } = this;
    if (!rank) return;
    try {
      const values = await askValues(rank);
      if (this.rank !== rank) return;
      if (values) this.values = values;
    } catch (error) {
      if (!(error instanceof Refused && error.status === 404)) throw error; // else it has left, and what it had stays
    }
    this.show();
    await this.askCatalogue(rank);
    if (this.rank === rank) this.show();
  }

  // askCatalogue asks for the rank's catalogue if it is not there, or values name variables it has not.
  async askCatalogue(rank) {
    if (!answering.has(this.values?.rank.state)) return; // nobody can say
    const known = new Set(this.catalogue?.variables.map((v) => v.name));
    const lacks = !this.catalogue || (this.values?.variables.some((v) => !known.has(v.name)) ?? false);
    if (!lacks || performance.now() - this.catalogueAt < catalogueAgain) return;
    this.catalogueAt = performance.now();
    try {
      const catalogue = await askCatalogue(rank);
      if (this.rank !== rank || !catalogue) return;
      this.catalogue = catalogue;
      this.names = null;
      const roots = branches(catalogue.categories ?? []);
      byId("categories").hidden = roots.length === 0;
      this.tree.show(roots, catalogue.variables.length);
    } catch (error) {
      if (!(error instanceof Refused)) throw error; // else its values can be shown meanwhile
    }
  }

  show() {
    const all = groups(this.catalogue, this.values);
    if (this.values) {
      this.history.add(this.values.time, all);
      showAbout(this.values.rank);
    }
    const wanted = chosen(all, byId("filter").value, this.names);
    const cut = this.table.show(wanted, this.history) + (this.values?.cut ?? 0);
    const more = cut > 0 ? `; ${cut} more series are not shown, filter to see them` : "";
    say(
      byId("count"),
      this.catalogue || this.values ? `${wanted.length} of ${all.length}${more}` : "asking the rank …",
    );
    if (this.told || !this.values) return;
    this.told = true;
    this.tell();
  }

  // tell tells those who don't see the page what it shows now, once they have stopped typing.
  tell() {
    clearTimeout(this.telling);
    this.telling = setTimeout(() => {
      if (this.rank)
        say(
          byId("said"),
          `Rank ${this.rank.rank} of job ${this.rank.jobid}: ${byId("count").textContent} variables shown.`,
        );
    }, 700);
  }
}

// showAbout says what is known of the rank, besides what is said of its job.
function showAbout(r) {
  const about = [
    ["State", stateOf(r)],
    ["Host", r.host],
    ["Pid", r.pid],
    ["Program", r.executable],
    ["Threads", r.thread_level],
    ["Partition", r.partition],
    ["Since", r.started ? moment(r.started) : ""],
    ["Job by the kernel's word", r.jobid_check === "unknown" ? "" : r.jobid_check],
  ].filter(([, text]) => text !== undefined && text !== "");
  const list = byId("about");
  const signature = JSON.stringify(about);
  if (list.signature === signature) return;
  list.signature = signature;
  list.replaceChildren(
    ...about.map(([name, text]) => element("div", {}, element("dt", {}, name), element("dd", {}, foreign(text)))),
  );
}
