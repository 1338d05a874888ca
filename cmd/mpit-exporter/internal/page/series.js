// What the table shows, made of a catalogue and of values: groups of series, one for each variable and metric.

import { pointsKept } from "./curve.js";
import { toNumber } from "./number.js";

const sort = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const keyOf = (v) => `${v.name}\0${v.class ?? ""}`;
const counts = (kind) => kind === "counter" || kind === "histogram";

// History has the last points of each series: of what counts by how much it grew in a second, else the values.
export class History {
  constructor() {
    this.of = new Map(); // series → {points, time, value}
    this.time = 0;
  }

  // add takes in the series of one moment. Those that are gone are forgotten.
  add(time, groups) {
    if (time <= this.time) return;
    this.time = time;
    const before = this.of;
    this.of = new Map();
    for (const g of groups) {
      for (const s of g.series) {
        const value = toNumber(s.count ?? s.value);
        const had = before.get(s.key) ?? { points: [], time: 0, value: NaN };
        if (!counts(g.kind)) had.points.push([time, value]);
        else if (had.time > 0)
          had.points.push([time, value < had.value ? NaN : ((value - had.value) * 1000) / (time - had.time)]);
        if (had.points.length > pointsKept) had.points.shift();
        had.time = time;
        had.value = value;
        this.of.set(s.key, had);
      }
    }
  }

  points(series) {
    return this.of.get(series.key)?.points ?? [];
  }

  // rate is how much a series of what counts has grown in the last second; NaN: not known.
  rate(group, series) {
    return counts(group.kind) ? (this.points(series).at(-1)?.[1] ?? NaN) : NaN;
  }
}

// why says why a variable has no value.
function why(v) {
  if (v.state === "on_request") return "on request: opened by exec --monitoring or a rule with open: true";
  if (v.state && v.state.toLowerCase() !== "open") return `${v.state}${v.code ? ` (${v.code})` : ""}`;
  if (v.dropped) return `left out: ${v.dropped}`;
  return "no value now";
}

// groups puts together what a rank's catalogue says (null: nobody could say) and its values (null: not yet).
export function groups(catalogue, values) {
  const described = new Map((catalogue?.variables ?? []).map((v) => [keyOf(v), v]));
  const made = [];
  const valued = new Set();
  for (const v of values?.variables ?? []) {
    const about = described.get(keyOf(v)) ?? {};
    valued.add(keyOf(v));
    made.push(
      group(
        v,
        about,
        v.series.map((s) => ({
          ...s,
          labels: Object.entries(s.labels ?? {}).sort((a, b) => sort(a[0], b[0])),
          key: JSON.stringify([v.metric, v.name, v.class, s.labels ?? {}]),
        })),
      ),
    );
  }
  for (const v of described.values()) {
    if (!valued.has(keyOf(v))) made.push(group(v, v, []));
  }
  return made.sort((a, b) => sort(a.name, b.name) || sort(a.class, b.class) || sort(a.metric, b.metric));
}

function group(v, about, series) {
  const g = {
    name: v.name,
    class: v.class ?? "",
    metric: v.metric ?? "",
    kind: v.kind ?? "",
    unit: v.unit ?? "",
    verbosity: about.verbosity ?? "",
    distribution: v.distribution ?? about.distribution ?? false,
    description: about.description ?? "",
    categories: about.categories ?? [],
    why: series.length > 0 || !about.name ? "" : why(about),
    series,
  };
  g.key = JSON.stringify([g.name, g.class, g.metric]);
  g.words = [
    g.name,
    g.class,
    g.metric,
    g.unit,
    g.verbosity,
    g.description,
    ...g.categories,
    g.distribution ? "distribution" : "",
  ]
    .join("\n")
    .toLowerCase();
  return g;
}

// chosen leaves what a filter lets through: all words of text somewhere in a group, or there and in a series' labels;
// and, unless names is null, variables with one of these names.
export function chosen(all, text, names) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const left = [];
  for (const g of all) {
    if (names && !names.has(g.name)) continue;
    const rest = words.filter((w) => !g.words.includes(w));
    if (rest.length === 0) {
      left.push([g, g.series]);
      continue;
    }
    const series = g.series.filter((s) =>
      rest.every((w) => s.labels.some(([name, value]) => `${name}=${value}`.toLowerCase().includes(w))),
    );
    if (series.length > 0) left.push([g, series]);
  }
  return left;
}
