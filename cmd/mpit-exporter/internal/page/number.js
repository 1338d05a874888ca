// Numbers for people. The exporter's own text stays beside them, in <data value>.

const prefixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0, useGrouping: "always" });
const few = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

// toNumber reads a number as the exporter writes it.
export const toNumber = (text) => (text === "+Inf" ? Infinity : text === "-Inf" ? -Infinity : Number(text));

// show writes a number with its unit (UCUM).
export function show(x, unit) {
  if (!Number.isFinite(x)) return String(x);
  if (unit === "By" && Math.abs(x) >= 1024) {
    const power = Math.min(Math.floor(Math.log2(Math.abs(x)) / 10), prefixes.length - 1);
    return `${few.format(x / 1024 ** power)} ${prefixes[power]}B`;
  }
  const number = Number.isInteger(x) && Math.abs(x) < 1e15 ? grouped.format(x) : Math.abs(x) >= 1e-4 && Math.abs(x) < 1e15 || x === 0 ? few.format(x) : x.toExponential(3);
  return unit && unit !== "1" ? `${number} ${unit === "By" ? "B" : unit.replace(/[{}]/g, "")}` : number;
}
