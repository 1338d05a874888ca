// What comes from ranks is text, and becomes nothing else: elements are made here alone, and strings only ever become
// text nodes or the value of an attribute named below.

// Characters that are not seen, or that change the direction of what follows, are written as in JSON.
const unseen = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const short = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

// plain makes all of a foreign text visible.
export function plain(text) {
  return String(text).replace(unseen, (c) => short[c] ?? "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));
}

const attributes = new Set([
  "class",
  "scope",
  "colspan",
  "rowspan",
  "role",
  "id",
  "value",
  "title",
  "tabindex",
  "type",
  "headers",
  "aria-label",
  "aria-current",
  "aria-expanded",
  "aria-selected",
  "aria-level",
  "aria-hidden",
  "aria-labelledby",
  "aria-describedby",
  "aria-live",
  "aria-sort",
  "x",
  "y",
  "width",
  "height",
  "viewBox",
  "preserveAspectRatio",
  "d",
]);

function complete(made, set, children) {
  for (const [attribute, value] of Object.entries(set)) {
    if (!attributes.has(attribute)) throw new Error(`no attribute ${attribute} is set here`);
    made.setAttribute(attribute, value);
  }
  made.append(...children);
  return made;
}

// element makes an element with attributes and children; a string is a text.
export const element = (name, set = {}, ...children) => complete(document.createElement(name), set, children);

// shape makes an element of a drawing.
export const shape = (name, set = {}, ...children) =>
  complete(document.createElementNS("http://www.w3.org/2000/svg", name), set, children);

// foreign is an element for a foreign text, whose direction is its own matter.
export const foreign = (text, set = {}) => element("bdi", set, plain(text));

// say changes a text only if it is another one: nothing is laid out, or read out, for nothing.
export function say(where, text) {
  if (where.textContent !== text) where.textContent = text;
}

export const byId = (id) => document.getElementById(id);
