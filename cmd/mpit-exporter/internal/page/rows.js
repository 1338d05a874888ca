// A table whose rows stay when their figures change: from answer to answer only texts do.

import { element, foreign, plain, say } from "./dom.js";

// Rows shows things in a table. A column is {name, title, text(thing)}, or {make(thing), fill(made, thing)} for what is
// no text; number says that it is one, unseen that its title is only read out; by(thing) is what the table may be
// sorted by, and sorted is told when somebody has sorted it.
export class Rows {
  constructor(table, columns, { most = 20, sort = "", sorted = () => {} } = {}) {
    Object.assign(this, { table, columns, most, sorted, rows: new Map(), order: "", things: [], key: null });
    this.all = false;
    const heads = columns.map((c) => {
      const head = element("th", { scope: "col", class: classOf(c) });
      if (!c.by) head.append(c.unseen ? element("span", { class: "unseen" }, c.title) : c.title);
      else {
        const button = element("button", { type: "button" }, c.title);
        button.addEventListener("click", () => this.sort(this.by === c.name ? "-" + c.name : c.name, true));
        head.append(button);
      }
      return head;
    });
    this.heads = heads;
    this.body = element("tbody");
    this.more = element("button", { type: "button", class: "more" });
    this.more.addEventListener("click", () => {
      this.all = !this.all;
      this.show(this.things, this.key);
    });
    this.more.hidden = true;
    table.append(element("thead", {}, element("tr", {}, ...heads)), this.body);
    table.closest(".wide").after(this.more);
    this.sort(sort);
  }

  // sort sorts by a column: large ones first, or small ones after "-". "" leaves things as they come.
  sort(by, tell = false) {
    const column = this.columns.find((c) => c.by && c.name === by.replace("-", ""));
    this.by = column ? by : "";
    this.columns.forEach((c, i) => {
      if (c === column) this.heads[i].setAttribute("aria-sort", by.startsWith("-") ? "ascending" : "descending");
      else this.heads[i].removeAttribute("aria-sort");
    });
    if (tell) this.sorted(this.by);
    if (this.key) this.show(this.things, this.key);
  }

  // show shows things; key tells them apart.
  show(things, key) {
    Object.assign(this, { things, key });
    const column = this.columns.find((c) => c.by && c.name === this.by.replace("-", ""));
    const shown = column
      ? things.toSorted((a, b) => compare(column.by(b), column.by(a)) * (this.by.startsWith("-") ? -1 : 1))
      : [...things];
    const cut = this.all ? 0 : Math.max(shown.length - this.most, 0);
    shown.length -= cut;
    say(this.more, cut > 0 ? `Show all ${things.length}` : `Show the first ${this.most}`);
    this.more.hidden = things.length <= this.most;
    const rows = new Map();
    for (const thing of shown) {
      const k = key(thing);
      const row = this.rows.get(k) ?? this.make(thing);
      rows.set(k, row);
      this.columns.forEach((c, i) => (c.make ? c.fill(row.made[i], thing) : say(row.made[i], plain(c.text(thing)))));
    }
    this.rows = rows;
    const order = [...rows.keys()].join("\0");
    if (order !== this.order) this.body.replaceChildren(...[...rows.values()].map((r) => r.row));
    this.order = order;
  }

  make(thing) {
    const made = this.columns.map((c) => (c.make ? c.make(thing) : foreign("")));
    const cells = made.map((m, i) =>
      element(i === 0 ? "th" : "td", { class: classOf(this.columns[i]), ...(i === 0 ? { scope: "row" } : {}) }, m),
    );
    return { made, row: element("tr", {}, ...cells) };
  }
}

const classOf = (c) => [c.number ? "number" : "", c.class ?? ""].join(" ").trim();
const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
