// Numbers for people. The exporter's own text stays beside them, in <data value>.

const prefixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0, useGrouping: "always" });
const few = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const three = new Intl.NumberFormat("en", { maximumSignificantDigits: 3, useGrouping: "always" });

// toNumber reads a number as the exporter writes it.
export const toNumber = (text) => (text === "+Inf" ? Infinity : text === "-Inf" ? -Infinity : Number(text));

// show writes a number with its unit (UCUM).
export function show(x, unit) {
  if (!Number.isFinite(x)) return String(x);
  if (unit === "By" && Math.abs(x) >= 1024) {
    const power = Math.min(Math.floor(Math.log2(Math.abs(x)) / 10), prefixes.length - 1);
    return `${few.format(x / 1024 ** power)} ${prefixes[power]}B`;
  }
  if (unit === "s") return (x < 0 ? "-" : "") + duration(Math.abs(x));
  const number =
    Number.isInteger(x) && Math.abs(x) < 1e15
      ? grouped.format(x)
      : (Math.abs(x) >= 1e-4 && Math.abs(x) < 1e15) || x === 0
        ? few.format(x)
        : x.toExponential(3);
  return unit && unit !== "1" ? `${number} ${unit === "By" ? "B" : things(unit, x)}` : number;
}

// things is a unit in words: {message} is a thing that is counted.
function things(unit, x) {
  const word = unit.replace(/[{}]/g, "");
  if (!unit.endsWith("}") || x === 1) return word;
  return /(s|x|ch|sh)$/.test(word) ? `${word}es` : /[^aeiou]y$/.test(word) ? `${word.slice(0, -1)}ies` : `${word}s`;
}

// percent writes a share from 0 to 1: small ones with a digit more.
export function percent(share) {
  const x = 100 * share;
  return `${x >= 1 || x === 0 ? Math.round(x) : x >= 0.1 ? x.toFixed(1) : "< 0.1"} %`;
}

// duration writes seconds as the verdict does: 6m52s, 12.3s, 1.09µs.
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds <= 0) return "0s";
  if (seconds >= 99.95) {
    const s = Math.round(seconds);
    const [h, m] = [Math.floor(s / 3600), Math.floor(s / 60) % 60];
    return `${h > 0 ? `${h}h` : ""}${h > 0 || m > 0 ? `${m}m` : ""}${s % 60}s`;
  }
  const [times, unit] =
    seconds >= 1 ? [1, "s"] : seconds >= 1e-3 ? [1e3, "ms"] : seconds >= 1e-6 ? [1e6, "µs"] : [1e9, "ns"];
  return `${three.format(seconds * times)}${unit}`;
}

// often writes how often something happens in a second.
export const often = (perSecond) => (Number.isFinite(perSecond) ? three.format(perSecond) : "–");

// clock is a time of day, moment one with its date.
export const clock = (time) => new Date(time).toLocaleTimeString("en-GB");
export const moment = (time) => `${new Date(time).toLocaleDateString("sv")} ${clock(time)}`;
