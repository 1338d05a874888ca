// A figure: a heat strip with its title, what it says in a sentence, its legend, and its figures in a table that can be
// opened.

import { element, plain, say, shape } from "./dom.js";
import { Rows } from "./rows.js";
import { Strip } from "./strip.js";

let made = 0;

export class Heat {
  // ramp is a list of colours in the style sheet; low and high say what its ends are, others [[class, text]] what else
  // is in the picture. The table has columns and at first so many rows.
  constructor(figure, { title, ramp, low, high, others = [], columns, most }) {
    const id = `heat-${++made}`;
    this.figure = figure;
    this.caption = element("p", { class: "caption", id: `${id}-caption` });
    const canvas = element("canvas", {
      role: "img",
      tabindex: "0",
      "aria-labelledby": `${id}-title`,
      "aria-describedby": `${id}-caption`,
    });
    this.readout = element("p", { class: "readout", "aria-live": "polite" });
    const swatch = (name) =>
      shape(
        "svg",
        { class: "swatch", viewBox: "0 0 1 1", "aria-hidden": "true" },
        shape("rect", { class: name, width: 1, height: 1 }),
      );
    this.high = element("span", {}, high);
    const legend = element(
      "p",
      { class: "legend" },
      element("span", {}, low, element("span", { class: `ramp ${ramp}` }), this.high),
      ...others.map(([name, text]) => element("span", {}, swatch(name), text)),
    );
    const table = element("table");
    this.details = element(
      "details",
      {},
      element("summary", {}, "As a table"),
      element("div", { class: "wide", role: "region", tabindex: "0", "aria-label": `${title}, as a table` }, table),
    );
    figure.append(
      element("h3", { id: `${id}-title` }, title),
      this.caption,
      element("div", { class: "canvas" }, canvas, this.readout),
      legend,
      this.details,
    );
    this.strip = new Strip(canvas, this.readout, `--${ramp}-ramp`);
    this.rows = new Rows(table, columns, { most });
    this.details.addEventListener("toggle", () => this.fill());
  }

  // show shows what a strip shows; caption is the sentence, high what the ramp ends with, table() the rows of the
  // table: {things, key}.
  show(what, { caption, high, table }) {
    this.table = table;
    say(this.caption, plain(caption));
    if (high) say(this.high, high);
    this.strip.show(what);
    this.fill();
  }

  // fill fills the table if somebody looks at it.
  fill() {
    if (!this.details.open || !this.table) return;
    const { things, key } = this.table();
    this.rows.show(things, key);
  }
}
