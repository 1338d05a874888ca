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
  const number =
    Number.isInteger(x) && Math.abs(x) < 1e15
      ? grouped.format(x)
      : (Math.abs(x) >= 1e-4 && Math.abs(x) < 1e15) || x === 0
        ? few.format(x)
        : x.toExponential(3);
  return unit && unit !== "1" ? `${number} ${unit === "By" ? "B" : unit.replace(/[{}]/g, "")}` : number;
}

// percent writes a share from 0 to 1: small ones with a digit more.
export function percent(share) {
  const x = 100 * share;
  return `${x >= 1 || x === 0 ? Math.round(x) : x >= 0.1 ? x.toFixed(1) : "< 0.1"} %`;
}

// duration writes seconds: three digits, whole ones from ten seconds on.
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds >= 9.995 && seconds < 59.5) return `${Math.round(seconds)} s`;
  if (seconds >= 59.5) {
    const s = Math.round(seconds);
    return s < 3600
      ? `${Math.floor(s / 60)} min ${s % 60} s`
      : `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  }
  const [times, unit] =
    seconds >= 1 ? [1, "s"] : seconds >= 1e-3 ? [1e3, "ms"] : seconds >= 1e-6 ? [1e6, "µs"] : [1e9, "ns"];
  return `${three.format(seconds * times)} ${unit}`;
}

// often writes how often something happens in a second.
export const often = (perSecond) => (Number.isFinite(perSecond) ? three.format(perSecond) : "–");

// clock is a time of day.
export const clock = (time) => new Date(time).toLocaleTimeString("en-GB");
