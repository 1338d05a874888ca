// A curve is an SVG path without axes: what it says in words stands in its label.

const svg = "http://www.w3.org/2000/svg";
const width = 130;
const height = 20;

// pointsKept is how many points a curve has at most.
export const pointsKept = 90;

export function makeCurve() {
  const picture = document.createElementNS(svg, "svg");
  picture.setAttribute("class", "curve");
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  picture.setAttribute("preserveAspectRatio", "none");
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", "no curve yet");
  picture.append(document.createElementNS(svg, "path"));
  return picture;
}

// path is the d of the points [time, value]; a value that is no number interrupts it.
export function path(points) {
  const values = points.map((p) => p[1]).filter(Number.isFinite);
  if (values.length < 2) return "";
  const low = Math.min(...values);
  const span = Math.max(...values) - low;
  const begin = points[0][0];
  const time = points[points.length - 1][0] - begin || 1;
  let d = "";
  let pen = "M";
  for (const [t, value] of points) {
    if (!Number.isFinite(value)) {
      pen = "M";
      continue;
    }
    const x = ((t - begin) / time) * width;
    const y = span > 0 ? (1 - (value - low) / span) * (height - 2) + 1 : height / 2;
    d += `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = "L";
  }
  return d;
}

// draw shows points; words makes a text of a number.
export function draw(picture, points, words) {
  const d = path(points);
  picture.firstChild.setAttribute("d", d);
  const values = points.map((p) => p[1]).filter(Number.isFinite);
  picture.setAttribute(
    "aria-label",
    d === "" ? "no curve yet" : `from ${words(Math.min(...values))} to ${words(Math.max(...values))}`,
  );
}
