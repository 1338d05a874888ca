// The exporter's JSON API (docs/api.md). Addresses are relative to the page, which may stand behind a path prefix.

// How long an answer may take: the exporter itself gives ranks 10 s.
const patience = 15000;

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function ask(path, parameters) {
  const url = new URL("api/v1/" + path, document.baseURI);
  url.hash = "";
  url.search = new URLSearchParams(parameters ?? {});
  const answer = await fetch(url, { signal: AbortSignal.timeout(patience), cache: "no-store" });
  if (answer.ok) return answer.json();
  let message = `${answer.status} ${answer.statusText}`;
  try {
    message = (await answer.json()).error ?? message;
  } catch {
    // no JSON: somebody else's answer, such as a proxy's
  }
  throw new Refused(answer.status, message);
}

const jobLabels = ({ jobid, world, user }) => ({ jobid, world, user });
const labels = (rank) => ({ ...jobLabels(rank), rank: rank.rank });

// sameJob and sameRank say whether two things are of one job's world, or of one rank of it.
export const sameJob = (a, b) => a.jobid === b.jobid && a.world === b.world && a.user === b.user;
export const sameRank = (a, b) => sameJob(a, b) && a.rank === b.rank && (a.dup ?? 0) === (b.dup ?? 0);

// askJobs returns the jobs of this node, with the verdict on each over that time, and the time of day.
export const askJobs = (window) => ask("jobs", { window });

// askReport returns what is known of one job over that time, or null when it is there no more.
export async function askReport(job, window) {
  try {
    return (await ask("report", { ...jobLabels(job), window })).reports[0] ?? null;
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return null;
    throw error;
  }
}

// askSites returns the places in a job's program where its ranks have waited most.
export const askSites = async (job) => (await ask("sites", jobLabels(job))).sites;

// askValues returns what one rank's variables are now, and those of its world, or null when it is there no more.
export async function askValues(rank) {
  const list = await ask("values", labels(rank));
  const own = list.ranks.find((r) => sameRank(r.rank, rank));
  if (!own) return null;
  return {
    time: Date.parse(list.time),
    rank: own.rank,
    variables: own.variables,
    cut: own.cut ?? 0,
  };
}

// askCatalogue returns what MPI_T offers in one rank, or null when nobody can say.
export async function askCatalogue(rank) {
  const list = await ask("catalogue", labels(rank));
  return list.catalogues.find((c) => sameRank(c.rank, rank)) ?? null;
}
