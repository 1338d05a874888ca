// What has been seen of a job: the share of useful time of each rank, from answer to answer.

import { isOver, useful } from "./ranges.js";

const mostMoments = 150;

// stuck stands for a rank that has been in one call for longer than ten seconds, in the place of a share.
export const stuck = 2;
const stuckFor = 10;

// slack is how many milliseconds without a report are no gap.
const slack = 1000;

// longest is of how many seconds a report may be: the exporter's window of a job with long steps.
const longest = 120;

export class Past {
  constructor() {
    this.index = new Map(); // rank's number and dup → its place in each moment
    this.ranks = []; // in the order of their numbers
    this.moments = []; // {time, of: Float32Array}
    this.measured = false; // something has been seen
  }

  // add takes in a report of a short time, which may be all that a job has had yet. What no report tells of is a gap.
  add(report) {
    const time = Date.parse(report.time);
    const last = this.moments.at(-1)?.time ?? time - 1;
    const short = !report.whole || (!report.job.ended && report.seconds > 0 && report.seconds <= longest);
    if (!short || time <= last) return;
    if (time - last > 1000 * report.seconds + slack && this.moments.length > 0)
      this.moments.push({ time: (time + last) / 2, of: new Float32Array() });
    for (const r of report.ranks) {
      const key = `${r.rank}/${r.dup ?? 0}`;
      if (this.index.has(key)) continue;
      this.ranks.push({ rank: r.rank, dup: r.dup ?? 0, at: this.index.size });
      this.index.set(key, this.index.size);
      this.ranks.sort((a, b) => a.rank - b.rank || a.dup - b.dup);
    }
    const of = new Float32Array(this.index.size).fill(NaN);
    for (const r of report.ranks) {
      if (!isOver(r)) of[this.index.get(`${r.rank}/${r.dup ?? 0}`)] = r.running_seconds >= stuckFor ? stuck : useful(r);
    }
    this.measured ||= of.some((v) => !Number.isNaN(v));
    this.moments.push({ time, of });
    while (this.moments.length > mostMoments) this.moments.shift();
  }

  // value is that of a rank, by its place in the order of numbers, at a moment.
  value(rank, moment) {
    return this.moments[moment].of[this.ranks[rank].at] ?? NaN;
  }
}
