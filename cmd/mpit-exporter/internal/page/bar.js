// A bar says how a time is divided. What it says in words stands in its label.

import { shape } from "./dom.js";
import { percent } from "./number.js";

// words are the parts of a bar in words.
export const words = (parts) => parts.map((p) => `${percent(p.share)} ${p.name}`).join(", ");

// makeBar makes an empty bar, fillBar shows parts in it.
export const makeBar = () =>
  shape("svg", {
    class: "bar",
    role: "img",
    "aria-label": "not measured",
    viewBox: "0 0 100 1",
    preserveAspectRatio: "none",
  });

export function fillBar(bar, parts) {
  const text = parts ? words(parts) : "not measured";
  if (bar.getAttribute("aria-label") === text && bar.childElementCount > 0) return;
  bar.setAttribute("aria-label", text);
  let x = 0;
  bar.replaceChildren(
    ...(parts ?? [])
      .filter((p) => p.share > 0)
      .map((p) => {
        const part = shape("rect", {
          class: p.class ?? (p.colour || "idle"),
          x: x.toFixed(2),
          y: 0,
          width: (100 * p.share).toFixed(2),
          height: 1,
        });
        x += 100 * p.share;
        return part;
      }),
  );
}
