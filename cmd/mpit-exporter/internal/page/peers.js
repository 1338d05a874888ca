// Who sends how much to whom, if it is measured (exec --calls=peers).

import { Heat } from "./heat.js";
import { often, show } from "./number.js";

// decades is over how many powers of ten the colours go.
const decades = 4;

export class Peers {
  constructor(figure) {
    this.heat = new Heat(figure, {
      title: "Messages from rank (row) to rank (column)",
      ramp: "useful",
      low: "little",
      high: "most bytes",
      others: [["blank", "none"]],
      most: 10,
      columns: [
        { name: "from", title: "From", text: (m) => `${m.from}` },
        { name: "to", title: "To", text: (m) => m.to },
        { name: "bytes", title: "Bytes/s", number: true, text: (m) => show(m.bytes / m.over, "By") },
        { name: "messages", title: "Messages/s", number: true, text: (m) => often(m.messages / m.over) },
        { name: "mean", title: "Bytes a message", number: true, text: (m) => show(m.bytes / m.messages, "By") },
      ],
    });
  }

  show(report) {
    const messages = (report.messages ?? []).filter((m) => m.messages > 0);
    if (messages.length === 0) return false;
    const size = Math.max(report.job.world_size, ...messages.map((m) => m.from + 1));
    const inside = messages.filter((m) => /^\d+$/.test(m.to) && Number(m.to) < size);
    const most = Math.max(...inside.map((m) => m.bytes), 1);
    const found = new Map(inside.map((m) => [`${m.from} ${m.to}`, m]));
    const pair = (m) =>
      `rank ${m.from} to ${m.to}: ${show(m.bytes / report.seconds, "By")}/s, ` +
      `${often(m.messages / report.seconds)} messages/s`;
    this.heat.show(
      {
        rows: size,
        columns: size,
        each: (put) =>
          inside.forEach((m) =>
            put(m.from, Number(m.to), Math.max(1 + Math.log10(Math.max(m.bytes, 1) / most) / decades, 0.1)),
          ),
        rowName: (i) => `${i}`,
        feet: [0, size - 1].map((column) => ({ column, text: `${column}` })),
        text: (i, k) => (found.has(`${i} ${k}`) ? pair(found.get(`${i} ${k}`)) : `rank ${i} to ${k}: nothing`),
      },
      {
        caption: `Most goes from ${pair(messages[0])}.`,
        high: `${show(most / report.seconds, "By")}/s`,
        table: () => ({
          things: messages.map((m) => ({ ...m, over: report.seconds })),
          key: (m) => `${m.from} ${m.to}`,
        }),
      },
    );
    return true;
  }
}
