// What the page's address says of what is looked at, so that it can be kept, and sent to others: after #, a job (jobid,
// world, user), one of its ranks (rank, dup), the order of its calls (sort), what is searched (filter), and whether
// figures are of the whole run (whole).

const given = () => new URLSearchParams(location.hash.slice(1));

// inAddress reads it. job is null if it names none; rank is null if it names none.
export function inAddress() {
  const named = given();
  const job =
    named.has("jobid") && named.has("user")
      ? { jobid: named.get("jobid"), world: named.get("world") ?? "", user: named.get("user") }
      : null;
  const rank =
    job && /^\d+$/.test(named.get("rank") ?? "")
      ? { ...job, rank: Number(named.get("rank")), dup: Number(named.get("dup")) || 0 }
      : null;
  return { job, rank, sort: named.get("sort") ?? "", filter: named.get("filter") ?? "", whole: named.has("whole") };
}

// of is the address of a job, or of one of its ranks, with everything else as it is now.
export function of(thing) {
  const named = given();
  for (const name of ["jobid", "world", "user", "rank", "dup"]) {
    if (thing[name] === undefined || (name === "dup" && !thing.dup)) named.delete(name);
    else named.set(name, thing[name]);
  }
  return "#" + named;
}

// note writes something down that is no other place: "Back" leads away from all of it. "" is nothing.
export function note(name, value) {
  const named = given();
  if (value === "") named.delete(name);
  else named.set(name, value);
  history.replaceState(null, "", named.size > 0 ? "#" + named : location.pathname + location.search);
}
