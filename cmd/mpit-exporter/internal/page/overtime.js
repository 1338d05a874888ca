// Ranks × time: the share of useful time of each rank, as far as the page has seen it.

import { Heat } from "./heat.js";
import { clock, percent } from "./number.js";
import { stuck } from "./past.js";
import { count } from "./ranges.js";

const named = (r) => (r.dup ? `${r.rank} (dup ${r.dup})` : `${r.rank}`);
const words = (value) =>
  Number.isNaN(value)
    ? "not observed"
    : value === stuck
      ? "in one call for more than 10 s"
      : `${percent(value)} useful`;
const short = (value) => (Number.isNaN(value) ? "–" : value === stuck ? "in one call" : percent(value));

// leastMoments is for how many the strip has room from the beginning, so that the first ones aren't a wall.
const leastMoments = 30;

export class OverTime {
  constructor(figure) {
    this.heat = new Heat(figure, {
      title: "Ranks over time",
      ramp: "useful",
      low: "0 %",
      high: "100 % useful",
      others: [
        ["stuck", "in one call for more than 10 s"],
        ["blank", "not observed"],
      ],
      most: 50,
      columns: [
        { name: "rank", title: "Rank", text: named },
        { name: "now", title: "Now", number: true, text: (r) => short(r.now) },
        { name: "mean", title: "Mean", number: true, text: (r) => short(r.mean) },
        { name: "least", title: "Least", number: true, text: (r) => short(r.least) },
        { name: "most", title: "Most", number: true, text: (r) => short(r.most) },
      ],
    });
  }

  // show shows what has been seen of a job, on which there is a report.
  show(past, { job, verdict: { late } }) {
    const { moments, ranks } = past;
    if (!past.measured) return false;
    const last = moments.length - 1;
    const now = ranks.map((r, i) => past.value(i, last));
    const measured = now.filter((v) => v <= 1);
    const typical = measured.reduce((sum, v) => sum + v, 0) / (measured.length || 1);
    const row = ranks.findIndex((r) => late && r.rank === late.rank && r.dup === (late.dup ?? 0));
    this.heat.show(
      {
        rows: ranks.length,
        columns: Math.max(moments.length, leastMoments),
        typical: () => typical,
        each: (put) => {
          for (let column = 0; column < moments.length; column++)
            for (let i = 0; i < ranks.length; i++) put(i, column, past.value(i, column));
        },
        rowName: (i) => (i === row ? `late ${named(ranks[i])}` : named(ranks[i])),
        marked: row >= 0 ? [row] : [],
        feet: [
          { column: 0, text: clock(moments[0].time) },
          ...(last >= leastMoments / 2 ? [{ column: last, text: clock(moments[last].time) }] : []),
        ],
        text: (i, column) =>
          column > last
            ? ""
            : `Rank ${named(ranks[i])} at ${clock(moments[column].time)}: ${words(past.value(i, column))}`,
      },
      { caption: sentence(ranks, now, row, job.ended), table: () => ({ things: seen(past, now), key: named }) },
    );
    return true;
  }
}

// sentence says what the last column shows.
function sentence(ranks, now, late, ended) {
  const inCall = now.filter((v) => v === stuck).length;
  const measured = now
    .map((v, i) => [v, i])
    .filter(([v]) => v <= 1)
    .sort((a, b) => a[0] - b[0]);
  const parts = [];
  if (inCall > 0)
    parts.push(
      (inCall === now.length ? "all ranks have" : inCall === 1 ? "1 rank has" : `${inCall} ranks have`) +
        " been in one call for more than 10 s",
    );
  const others = measured.filter(([, i]) => i !== late);
  const range = (list) =>
    percent(list[0][0]) === percent(list.at(-1)[0])
      ? percent(list[0][0])
      : `${percent(list[0][0])} to ${percent(list.at(-1)[0])}`;
  if (late >= 0 && now[late] <= 1) {
    parts.push(
      `rank ${named(ranks[late])} is ${percent(now[late])} useful` +
        (others.length > 0 ? `, ${inCall > 0 ? count(others.length) : "the others"} ${range(others)}` : ""),
    );
  } else if (measured.length > 0) {
    parts.push(
      (inCall > 0 ? count(measured.length) : measured.length === 1 ? "the rank is" : "ranks are") +
        ` ${range(measured)} useful`,
    );
  }
  const text = parts.join("; ");
  return text === "" ? "No rank is observed now." : `${ended ? "At the end" : "Now"} ${text}.`;
}

// seen is what the table has of each rank.
function seen(past, now) {
  return past.ranks.map((r, i) => {
    const values = past.moments
      .map((m, column) => past.value(i, column))
      .filter((v) => !Number.isNaN(v))
      .map((v) => (v > 1 ? 0 : v));
    const mean = values.length > 0 ? values.reduce((sum, v) => sum + v, 0) / values.length : NaN;
    return {
      ...r,
      now: now[i],
      mean,
      least: values.length > 0 ? Math.min(...values) : NaN,
      most: values.length > 0 ? Math.max(...values) : NaN,
    };
  });
}
