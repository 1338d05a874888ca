// Sizes of calls, if they are measured (exec --calls=sizes): how many calls had how many bytes.

import { nameOf } from "./functions.js";
import { Heat } from "./heat.js";
import { often, percent, show } from "./number.js";

const mostFunctions = 10;
const unbounded = 1e300;

const bound = (bytes) => (bytes > unbounded ? "more" : show(bytes, "By"));

// atMost is the bound that a share of the calls doesn't exceed.
function atMost(s, share) {
  let passed = 0;
  for (const b of s.buckets) if ((passed += b.calls) >= share * s.calls) return bound(b.bytes);
  return "";
}

export class Sizes {
  constructor(figure) {
    this.heat = new Heat(figure, {
      title: "Sizes of calls",
      ramp: "useful",
      low: "0 %",
      high: "100 % of the function's calls",
      most: 20,
      columns: [
        { name: "function", title: "Function", text: nameOf },
        { name: "calls", title: "Calls/s", number: true, text: (s) => often(s.calls / s.over) },
        { name: "half", title: "Median up to", number: true, text: (s) => atMost(s, 0.5) },
        { name: "most", title: "90 % up to", number: true, text: (s) => atMost(s, 0.9) },
        { name: "all", title: "All up to", number: true, text: (s) => atMost(s, 1) },
      ],
    });
  }

  show(report) {
    const sizes = (report.sizes ?? []).filter((s) => s.calls > 0).slice(0, mostFunctions);
    if (sizes.length === 0) return false;
    const all = sizes.flatMap((s) => s.buckets.map((b) => b.bytes));
    const bounds = [];
    const most = Math.max(...all.filter((b) => b < unbounded), 1);
    for (let b = Math.min(...all.filter((x) => x < unbounded), most); b <= most; b *= 4) bounds.push(b);
    if (all.some((b) => b > unbounded)) bounds.push(Infinity);
    const column = (bytes) => (bytes > unbounded ? bounds.length - 1 : bounds.findIndex((b) => bytes <= b * 1.01));
    const shareOf = (s, k) => {
      const those = s.buckets.filter((b) => column(b.bytes) === k);
      return those.reduce((n, b) => n + b.calls, 0) / s.calls;
    };
    this.heat.show(
      {
        rows: sizes.length,
        columns: bounds.length,
        each: (put) =>
          sizes.forEach((s, i) => {
            bounds.forEach((b, k) => put(i, k, 0));
            s.buckets.forEach((b) => put(i, column(b.bytes), b.calls / s.calls));
          }),
        rowName: (i) => nameOf(sizes[i]),
        feet: [0, bounds.length - 1].map((k) => ({ column: k, text: bound(bounds[k]) })),
        text: (i, k) => `${nameOf(sizes[i])}: ${percent(shareOf(sizes[i], k))} of the calls up to ${bound(bounds[k])}`,
      },
      {
        caption:
          `${nameOf(sizes[0])}: half of the calls are up to ${atMost(sizes[0], 0.5)}, ` +
          `all up to ${atMost(sizes[0], 1)}.`,
        table: () => ({
          things: (report.sizes ?? []).map((s) => ({ ...s, over: report.seconds })),
          key: (s) => JSON.stringify([s.function, s.kind, s.object]),
        }),
      },
    );
    return true;
  }
}
