// Ranks, put together where they are alike.

// observed is a rank's time in seconds, useful and kind are shares of it; NaN: its calls are not measured.
export const observed = (r) => Object.values(r.state_seconds).reduce((sum, s) => sum + s, 0) || NaN;
export const useful = (r) => kind(r, "outside");
export const kind = (r, state) => (r.state_seconds[state] ?? 0) / observed(r);

export const kinds = ["collective", "wait", "poll", "send", "file"];
// over are the states after a rank's last sample.
export const over = ["finalize", "ended"];

// isOver says whether a rank has ended.
export const isOver = (r) => r.state === "ended" || r.state === "gone";

// stateOf says in a word or two how a rank is.
export const stateOf = (r) => (r.end_reason ? `${r.state} (${r.end_reason})` : r.state);

// placeOf is the call that a rank has been in for longer than a second; "": none.
export const placeOf = (r) => (r.long ? [r.long.function, r.long.kind, r.long.object].join("\n") : "");

const near = (a, b, by) => Object.is(a, b) || Math.abs(a - b) <= by;

// alike puts ranks together whose time goes the same way, in the order in which they come.
export function alike(ranks) {
  const groups = [];
  for (const r of ranks) {
    const same = groups.find(
      ([g]) =>
        near(useful(g), useful(r), 0.05) &&
        [...kinds, ...over].every((k) => near(kind(g, k), kind(r, k), 0.1)) &&
        stateOf(g) === stateOf(r) &&
        placeOf(g) === placeOf(r) &&
        g.node === r.node,
    );
    if (same) same.push(r);
    else groups.push([r]);
  }
  return groups;
}

// numbers writes the ranks of a list, such as 0–3, 5; at most so many parts of it.
export function numbers(ranks, most = 6) {
  const parts = [];
  for (const n of [...new Set(ranks.map((r) => r.rank))].sort((a, b) => a - b)) {
    const last = parts.at(-1);
    if (last && last[1] === n - 1) last[1] = n;
    else parts.push([n, n]);
  }
  const text = parts
    .slice(0, most)
    .map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`))
    .join(", ");
  return parts.length > most ? `${text}, …` : text;
}

// count says how many ranks there are.
export const count = (n) => (n === 1 ? "1 rank" : `${n} ranks`);
