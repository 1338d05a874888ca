// Queues and watermarks of the library: how much there is, or was at most, and in which rank.

import { byId } from "./dom.js";
import { show } from "./number.js";
import { Rows } from "./rows.js";

const of = (l) =>
  Object.entries(l.labels ?? {})
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");

export class Levels {
  constructor() {
    this.rows = new Rows(
      byId("level-table"),
      [
        { name: "metric", title: "Metric", class: "name", text: (l) => l.metric },
        { name: "of", title: "Of", text: of },
        { name: "most", title: "Most", number: true, text: (l) => show(l.most, l.unit) },
        { name: "rank", title: "In rank", number: true, text: (l) => `${l.rank}` },
      ],
      { most: 8 },
    );
  }

  show(report) {
    const levels = report.levels ?? [];
    this.rows.show(levels, (l) => l.metric + JSON.stringify(l.labels ?? {}));
    return levels.length > 0;
  }
}
