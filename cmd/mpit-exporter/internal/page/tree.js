// The tree of categories that performance variables stand in: one stop of Tab, then arrows, Home, End, Enter.

import { element, foreign } from "./dom.js";

// A category may stand in several others, even in a circle: branches end where they would go round, and there are
// neither too many nor too deep ones.
const mostLooks = 5000;
const mostLevels = 24;

// branches makes a tree of a catalogue's categories, leaving out those without performance variables: [{name,
// variables, branches}], where variables is a Set with those of the branches.
export function branches(categories) {
  const byName = new Map(categories.map((c) => [c.name, c]));
  let looks = 0;
  const grow = (c, above) => {
    if (above.has(c.name) || above.size === mostLevels || ++looks > mostLooks) return null;
    const within = new Set(above).add(c.name);
    const variables = new Set(c.variables);
    const below = [];
    for (const name of new Set(c.subcategories)) {
      const branch = byName.has(name) ? grow(byName.get(name), within) : null;
      if (!branch) continue;
      below.push(branch);
      for (const v of branch.variables) variables.add(v);
    }
    return variables.size === 0 ? null : { name: c.name, variables, branches: below };
  };
  const roots = categories.filter((c) => c.parents.length === 0);
  return (roots.length > 0 ? roots : categories.slice(0, 1)).map((c) => grow(c, new Set())).filter(Boolean);
}

// Tree shows them in a list with role=tree and calls choose with the branch that is selected, null for all. Items of
// all levels stand in one list, each with its level: so an item's text is its name, and nothing else.
export class Tree {
  constructor(list, choose) {
    this.list = list;
    this.choose = choose;
    this.items = []; // {item, branch, level, above}
    list.addEventListener("click", (event) => this.clicked(event));
    list.addEventListener("keydown", (event) => this.pressed(event));
  }

  show(roots, count) {
    this.items = [];
    const add = (branch, level, above) => {
      const text = branch ? foreign(branch.name) : "All";
      const n = branch ? branch.variables.size : count;
      const item = element(
        "li",
        { role: "treeitem", "aria-level": level, "aria-selected": "false", tabindex: "-1" },
        text,
        ` (${n})`,
      );
      const entry = { item, branch, level, above };
      this.items.push(entry);
      if (!branch || branch.branches.length === 0) return;
      item.setAttribute("aria-expanded", String(level < 2));
      for (const b of branch.branches) add(b, level + 1, entry);
    };
    add(null, 1, null);
    for (const b of roots) add(b, 1, null);
    this.list.replaceChildren(...this.items.map((e) => e.item));
    this.fold();
    this.select(this.items[0], false);
  }

  // fold hides what stands in closed branches.
  fold() {
    for (const e of this.items)
      e.item.hidden =
        e.above !== null && (e.above.item.hidden || e.above.item.getAttribute("aria-expanded") === "false");
  }

  toggle(entry, open) {
    if (!entry.item.hasAttribute("aria-expanded")) return;
    entry.item.setAttribute("aria-expanded", String(open));
    this.fold();
  }

  // stop makes an item the one that Tab comes to.
  stop(entry) {
    for (const e of this.items) e.item.tabIndex = e === entry ? 0 : -1;
  }

  select(entry, tell = true) {
    for (const e of this.items) e.item.setAttribute("aria-selected", String(e === entry));
    this.stop(entry);
    if (tell) this.choose(entry.branch);
  }

  move(entry) {
    if (!entry) return;
    this.stop(entry);
    entry.item.focus();
  }

  of(event) {
    const item = event.target.closest("[role=treeitem]");
    return this.items.find((e) => e.item === item);
  }

  clicked(event) {
    const entry = this.of(event);
    if (!entry) return;
    if (entry.item.getAttribute("aria-selected") === "true")
      this.toggle(entry, entry.item.getAttribute("aria-expanded") !== "true");
    this.select(entry);
    entry.item.focus();
  }

  pressed(event) {
    const entry = this.of(event);
    if (!entry || event.altKey || event.ctrlKey || event.metaKey) return;
    const seen = this.items.filter((e) => !e.item.hidden);
    const at = seen.indexOf(entry);
    const open = entry.item.getAttribute("aria-expanded");
    switch (event.key) {
      case "ArrowDown":
        this.move(seen[at + 1]);
        break;
      case "ArrowUp":
        this.move(seen[at - 1]);
        break;
      case "Home":
        this.move(seen[0]);
        break;
      case "End":
        this.move(seen.at(-1));
        break;
      case "ArrowRight":
        if (open === "false") this.toggle(entry, true);
        else if (open === "true") this.move(seen[at + 1]);
        break;
      case "ArrowLeft":
        if (open === "true") this.toggle(entry, false);
        else this.move(entry.above);
        break;
      case "Enter":
      case " ":
        this.select(entry);
        break;
      default:
        return;
    }
    event.preventDefault();
  }
}
