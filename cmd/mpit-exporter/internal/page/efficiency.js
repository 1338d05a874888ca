// How efficient a job's ranks on this node are, between two answers of the exporter: docs/calls.md has the definitions.

import { keyOf } from "./api.js";

export class Efficiencies {
  #useful = new Map(); // of each rank: its share of time outside MPI
  #before = new Map(); // of each rank: what its calls were

  // add takes what the exporter says of all ranks.
  add(ranks) {
    const now = new Map(ranks.filter((r) => r.calls).map((r) => [keyOf(r), r.calls]));
    const useful = new Map();
    for (const [key, calls] of now) {
      const { inside_seconds: inside, observed_seconds: observed } = this.#before.get(key) ?? calls;
      const passed = calls.observed_seconds - observed;
      if (passed > 0) useful.set(key, Math.max(0, 1 - (calls.inside_seconds - inside) / passed));
    }
    this.#before = now;
    this.#useful = useful;
  }

  // of says it of the ranks of one job; "" if nothing is known.
  of(job) {
    const useful = job.map((r) => this.#useful.get(keyOf(r))).filter((u) => u !== undefined);
    if (!useful.length) return "";
    const parallel = useful.reduce((sum, u) => sum + u, 0) / useful.length;
    const communication = Math.max(...useful);
    const percent = (share) => `${Math.round(100 * share)} %`;
    const parts = communication > 0 ? ` = ${percent(parallel / communication)} load balance × ${percent(communication)} communication` : "";
    const size = Math.max(...job.map((r) => r.world_size ?? 0));
    return `${percent(parallel)} useful${parts}; ${useful.length} of ${size} ranks`;
  }
}
