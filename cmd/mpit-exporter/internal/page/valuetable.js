// The table of variables. From answer to answer only numbers and curves change; rows are made anew when there are
// others.

import { draw, makeCurve } from "./curve.js";
import { element, foreign, say } from "./dom.js";
import { show, toNumber } from "./number.js";

// mostRows is how many series are shown: a filter brings the others.
const mostRows = 400;

export class ValueTable {
  constructor(table) {
    this.table = table;
    this.bodies = new Map(); // group's key → {body, signature, rows}
    this.order = "";
  }

  // show shows groups, each with those of its series that are wanted, and returns how many series found no row.
  show(wanted, history) {
    let room = mostRows;
    let cut = 0;
    const bodies = new Map();
    for (const [group, series] of wanted) {
      const shown = series.slice(0, Math.max(room, 0));
      cut += series.length - shown.length;
      if (room <= 0) continue;
      room -= Math.max(shown.length, 1);
      const signature = JSON.stringify([
        group.verbosity,
        group.distribution,
        group.description,
        group.categories,
        group.why,
        group.unit,
        shown.map((s) => s.key),
      ]);
      let had = this.bodies.get(group.key);
      if (had?.signature !== signature) had = { signature, ...makeBody(group, shown) };
      bodies.set(group.key, had);
      shown.forEach((s, i) => fill(had.rows[i], group, s, history));
    }
    const changed = bodies.size !== this.bodies.size || [...bodies].some(([key, b]) => this.bodies.get(key) !== b);
    this.bodies = bodies;
    this.table.hidden = bodies.size === 0;
    if (changed) this.table.replaceChildren(this.table.tHead, ...[...bodies.values()].map((b) => b.body));
    return cut;
  }
}

let bodies = 0;

function makeBody(group, series) {
  const id = `variable-${++bodies}`;
  const about = element(
    "th",
    { scope: "rowgroup", colspan: "4", id },
    foreign(group.name, { class: "name" }),
    " ",
    element(
      "span",
      { class: "faint" },
      element("span", { class: "class" }, group.class),
      ` ${group.verbosity}${group.distribution ? " distribution" : ""}`,
    ),
  );
  if (group.description) about.append(element("div", { class: "description" }, foreign(group.description)));
  const place = element("div", { class: "description" });
  if (group.metric) place.append(foreign(group.metric, { class: "metric" }), " ");
  if (group.categories.length > 0)
    place.append("in ", ...group.categories.flatMap((name, i) => [i > 0 ? ", " : "", foreign(name)]));
  about.append(place);
  const rows = series.map((s) => makeRow(group, s, id));
  const lines =
    rows.length > 0
      ? rows.map((row) => row.cells)
      : [[element("td", { colspan: "4", class: "faint", headers: id }, foreign(group.why))]];
  return {
    rows,
    body: element(
      "tbody",
      {},
      element("tr", { class: "variable" }, about),
      ...lines.map((cells) => element("tr", { class: "series" }, ...cells)),
    ),
  };
}

// makeRow makes the cells of a series. Each names its headers: its column's, and that of its variable in a row above.
function makeRow(group, series, id) {
  const of = element("td", { class: "of", headers: `${id} values-of` }, "");
  for (const [name, value] of series.labels) of.append(element("div", {}, `${name} `, foreign(value)));
  const value = element("data", { class: "value" });
  const sum = series.sum === undefined ? null : element("data", { class: "sum" });
  const mean = sum && element("span");
  const cell = element("td", { class: "number", headers: `${id} values-value` }, value);
  const rate = element("td", { class: "number", headers: `${id} values-rate` });
  if (sum)
    cell.append(
      element("div", { class: "description" }, "sum ", sum),
      element("div", { class: "description" }, "mean ", mean),
    );
  const curve = makeCurve();
  return {
    cells: [of, cell, rate, element("td", { class: "curve", headers: `${id} values-curve` }, curve)],
    value,
    sum,
    mean,
    rate,
    curve,
  };
}

function fill(row, group, series, history) {
  const unit = group.kind === "histogram" ? "" : group.unit;
  const number = series.count ?? series.value;
  row.value.value = number;
  say(row.value, show(toNumber(number), unit));
  if (row.sum) {
    row.sum.value = series.sum;
    say(row.sum, show(toNumber(series.sum), group.unit));
    say(row.mean, toNumber(number) > 0 ? show(toNumber(series.sum) / toNumber(number), group.unit) : "–");
  }
  const rate = history.rate(group, series);
  say(row.rate, Number.isFinite(rate) ? show(rate, unit) : "");
  draw(row.curve, history.points(series), (x) => show(x, unit));
}
