// A heat strip is a picture of many values at once, in rows and columns. It stands on a canvas, as there may be a
// hundred thousand of them; what it says in words stands below it, and its figures in a table that can be opened.
// Pointer and arrow keys read out a cell.

import { say } from "./dom.js";

const line = 13; // pixels from one label to the next
// between labels of rows that are too many
const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, Infinity];
const foot = 16; // below the rows, for what stands under columns

// colours reads a ramp from the style sheet: [red, green, blue] for each step from 0 to 1.
function colours(style, name) {
  return style
    .getPropertyValue(name)
    .split(",")
    .map((c) => [1, 3, 5].map((i) => parseInt(c.trim().slice(i, i + 2), 16)));
}

function mixed(ramp, share) {
  const at = Math.min(Math.max(share, 0), 1) * (ramp.length - 1);
  const i = Math.min(Math.floor(at), ramp.length - 2);
  return ramp[i].map((c, k) => Math.round(c + (ramp[i + 1][k] - c) * (at - i)));
}

export class Strip {
  // canvas is labelled by its figure; readout takes the words of the cell that is pointed at.
  constructor(canvas, readout, ramp) {
    Object.assign(this, { canvas, readout, ramp, cell: null, what: null });
    new ResizeObserver(() => this.draw()).observe(canvas.parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    canvas.addEventListener("pointermove", (event) => this.point(this.under(event)));
    canvas.addEventListener("pointerleave", () => this.point(null));
    canvas.addEventListener("blur", () => this.point(null));
    canvas.addEventListener("keydown", (event) => this.pressed(event));
  }

  // show draws what: so many rows and columns; each(put) puts values from 0 to 1, and above 1 for an alarm, into cells;
  // of several values in one pixel that furthest from what is typical of the row is seen. rowName and columnName label
  // them, marked rows always; text says a cell.
  show(what) {
    this.what = what;
    this.draw();
  }

  // draw draws it at the canvas' width.
  draw() {
    const { canvas, what } = this;
    const width = canvas.parentElement.clientWidth;
    if (!what || width === 0) return;
    const dots = devicePixelRatio || 1;
    const each = what.rows <= 16 ? 20 : what.rows <= 40 ? 11 : 360 / what.rows;
    const height = Math.round(what.rows * each);
    if (canvas.width !== Math.round(width * dots) || canvas.height !== Math.round((height + foot) * dots)) {
      canvas.width = Math.round(width * dots);
      canvas.height = Math.round((height + foot) * dots);
    }
    const pen = canvas.getContext("2d");
    const style = getComputedStyle(canvas);
    pen.setTransform(dots, 0, 0, dots, 0, 0);
    pen.clearRect(0, 0, width, height + foot);
    const names = this.rowNames(each);
    pen.font = `bold 12px ${style.fontFamily}`;
    const left = Math.min(
      Math.ceil(Math.max(...names.map((n) => pen.measureText(n.text).width), 8)) + 8,
      Math.round(width * 0.42),
    );
    this.area = { left, width: width - left, height, each };
    this.fill(pen, style, dots);
    this.label(pen, style, names);
  }

  // rowNames are the labels that have room, those of marked rows first.
  rowNames(each) {
    const { what } = this;
    const taken = [];
    const names = [];
    const add = (row, marked) => {
      const y = (row + 0.5) * each;
      if (taken.some((t) => Math.abs(t - y) < line)) return;
      taken.push(y);
      names.push({ y, text: what.rowName(row), marked });
    };
    for (const row of (what.marked ?? []).slice(0, 8)) add(row, true);
    const step = each >= line ? 1 : steps.find((n) => n * each >= 2 * line);
    for (let row = 0; row < what.rows; row += step) add(row, false);
    return names;
  }

  fill(pen, style, dots) {
    const { what, area } = this;
    const ramp = colours(style, this.ramp);
    const alarm = colours(style, "--hung")[0];
    const rows = Math.min(what.rows, Math.floor(area.height * dots));
    const columns = Math.min(what.columns, Math.floor(area.width * dots));
    const values = new Float32Array(rows * columns).fill(NaN);
    const typical = Array.from({ length: what.rows }, (_, row) => what.typical?.(row) ?? 0);
    what.each((row, column, value) => {
      const at = Math.floor((row * rows) / what.rows) * columns + Math.floor((column * columns) / what.columns);
      if (!(Math.abs(values[at] - typical[row]) >= Math.abs(value - typical[row]))) values[at] = value;
    });
    const picture = new ImageData(columns, rows);
    values.forEach((value, i) => {
      if (Number.isNaN(value)) return;
      const [red, green, blue] = value > 1 ? alarm : mixed(ramp, value);
      picture.data.set([red, green, blue, 255], 4 * i);
    });
    const small = new OffscreenCanvas(columns, rows);
    small.getContext("2d").putImageData(picture, 0, 0);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(small, area.left, 0, area.width, area.height);
    // Thin lines between the rows of few.
    pen.strokeStyle = style.getPropertyValue("--ground");
    pen.lineWidth = 1;
    if (area.each < 8) return;
    for (let row = 1; row < what.rows; row++) pen.strokeRect(area.left, row * area.each, area.width, 0);
  }

  label(pen, style, names) {
    const { what, area, cell } = this;
    pen.textBaseline = "middle";
    pen.textAlign = "end";
    for (const { y, text, marked } of names) {
      pen.fillStyle = style.getPropertyValue(marked ? "--text" : "--faint");
      pen.font = `${marked ? "bold " : ""}12px ${style.fontFamily}`;
      pen.fillText(fitting(pen, text, area.left - 6), area.left - 5, Math.max(y, 6));
    }
    pen.strokeStyle = style.getPropertyValue("--line");
    pen.strokeRect(area.left + 0.5, 0.5, area.width - 1, area.height - 1);
    pen.fillStyle = style.getPropertyValue("--faint");
    pen.font = `12px ${style.fontFamily}`;
    for (const { column, text } of what.feet) {
      const x = area.left + ((column + 0.5) * area.width) / what.columns;
      pen.textAlign = x > area.left + area.width * 0.9 ? "end" : x < area.left + area.width * 0.1 ? "start" : "center";
      pen.fillText(
        text,
        pen.textAlign === "end" ? area.left + area.width : pen.textAlign === "start" ? area.left : x,
        area.height + foot / 2 + 1,
      );
    }
    if (!cell) return;
    const wide = area.width / what.columns;
    pen.strokeStyle = style.getPropertyValue("--text");
    pen.lineWidth = 2;
    pen.strokeRect(area.left + cell.column * wide, cell.row * area.each, Math.max(wide, 3), Math.max(area.each, 3));
  }

  // under is the cell below the pointer; null: none.
  under(event) {
    const { what, area } = this;
    const at = this.canvas.getBoundingClientRect();
    const column = Math.floor(((event.clientX - at.left - area?.left) / area?.width) * what?.columns);
    const row = Math.floor((event.clientY - at.top) / area?.each);
    return row >= 0 && row < what?.rows && column >= 0 && column < what?.columns ? { row, column } : null;
  }

  // point marks a cell and says what is in it.
  point(cell) {
    if (!cell && !this.cell) return;
    this.cell = cell;
    say(this.readout, cell ? this.what.text(cell.row, cell.column) : "");
    if (cell) this.place(cell);
    this.draw();
  }

  // place puts the words beside their cell, where they hide no cell above it and are not cut off.
  place({ row, column }) {
    const { area, what, readout } = this;
    const x = area.left + ((column + 0.5) * area.width) / what.columns;
    const half = x > area.left + area.width / 2;
    readout.style.left = half ? "auto" : `${x + 12}px`;
    readout.style.right = half ? `${area.left + area.width - x + 12}px` : "auto";
    readout.style.top = `${(row + 1) * area.each + 6}px`;
  }

  pressed(event) {
    const { what, cell } = this;
    const step = {
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      Home: [0, -Infinity],
      End: [0, Infinity],
    }[event.key];
    if (event.key === "Escape") this.point(null);
    if (!step || !what || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const from = cell ?? { row: 0, column: what.columns };
    const within = (x, n) => Math.min(Math.max(x, 0), n - 1);
    this.point({
      row: within(from.row + (cell ? step[0] : 0), what.rows),
      column: within(from.column + step[1], what.columns),
    });
  }
}

// fitting shortens a text to a width.
function fitting(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let n = text.length;
  while (n > 1 && pen.measureText(text.slice(0, n) + "…").width > width) n--;
  return text.slice(0, n) + "…";
}
