// Draws the dashboards from the answers of a Prometheus, as pictures: see docs/dashboards.md.
//
//   node draw.mjs --prometheus=URL --out=DIRECTORY [--seconds=180] [--to=UNIX_TIME] [--scrape-interval=15] [--width=1440]
//                 [--var=NAME=VALUE …] [--open=TITLE_OF_A_COLLAPSED_ROW …] [--only=FILE …] [--row=TITLE_OF_A_ROW …] [--suffix=OF_THE_PICTURES_NAME]
import { build } from 'esbuild';
import { chromium } from 'playwright-core';
import { createServer } from 'node:http';
import { mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import sharp from 'sharp';
import { choose, fill, title } from './variables.mjs';

const here = dirname(fileURLToPath(import.meta.url));

const { values: flags } = parseArgs({
  options: {
    prometheus: { type: 'string' },
    out: { type: 'string' },
    seconds: { type: 'string', default: '180' },
    to: { type: 'string' },
    'scrape-interval': { type: 'string', default: '15' },
    width: { type: 'string', default: '1440' },
    var: { type: 'string', multiple: true, default: [] },
    open: { type: 'string', multiple: true, default: [] },
    only: { type: 'string', multiple: true, default: [] },
    row: { type: 'string', multiple: true, default: [] },
    suffix: { type: 'string', default: '' },
    chromium: { type: 'string', default: 'chromium' },
  },
});
if (!flags.prometheus || !flags.out) {
  throw new Error('say which Prometheus is asked with --prometheus=URL, and where pictures go with --out=DIRECTORY');
}
const wanted = Object.fromEntries(flags.var.map((text) => text.split('=')));
const scrape = Number(flags['scrape-interval']);
const to = flags.to ? Number(flags.to) : Math.floor(Date.now() / 1000);
const from = to - Number(flags.seconds);
// Grafana's steps and intervals, for panels of more points than there are scrapes: see $__rate_interval in its documentation.
const stepOf = ({ maxDataPoints = Infinity }) => Math.max(scrape, Math.ceil((to - from) / maxDataPoints / scrape) * scrape);
const builtin = (step) => ({ __interval: `${step}s`, __rate_interval: `${Math.max(step + scrape, 4 * scrape)}s`, __range: `${to - from}s` });

async function ask(path, parameters) {
  const response = await fetch(`${flags.prometheus}/api/v1/${path}?${new URLSearchParams(parameters)}`, { signal: AbortSignal.timeout(120_000) });
  const answer = await response.json();
  if (answer.status !== 'success') {
    throw new Error(`Prometheus' answer to ${parameters.query ?? path}: ${answer.error}`);
  }
  return answer.data;
}

const labelValues = (selector, label) => ask(`label/${label}/values`, { 'match[]': selector, start: from, end: to });

// Grafana aligns a range with the step.
function answerOf(target, step, values) {
  const query = fill(target.expr, values);
  return target.instant
    ? ask('query', { query, time: to })
    : ask('query_range', { query, start: Math.floor(from / step) * step, end: Math.floor(to / step) * step, step });
}

// What the page gets: the dashboard with the panels that are to be seen in their places, the answers to each, and the choices.
async function dashboardOf(file) {
  const dashboard = JSON.parse(await readFile(file, 'utf8'));
  const choices = await choose(dashboard, builtin(scrape), labelValues, wanted);
  const { values } = choices;
  const panels = [];
  let moved = 0; // by how much rows that are opened push down what is below
  for (const panel of dashboard.panels) {
    panels.push({ ...panel, gridPos: { ...panel.gridPos, y: panel.gridPos.y + moved } });
    if (panel.type === 'row' && flags.open.includes(panel.title)) {
      panels[panels.length - 1].collapsed = false;
      panels.push(...panel.panels.map((p) => ({ ...p, gridPos: { ...p.gridPos, y: p.gridPos.y + moved } })));
      moved += Math.max(...panel.panels.map((p) => p.gridPos.y + p.gridPos.h)) - panel.gridPos.y - 1;
    }
  }
  if (flags.row.length) {
    keepRows(panels);
  }
  for (const panel of panels) {
    panel.title = title(panel.title, choices);
    panel.step = stepOf(panel) * 1000;
    const all = { ...values, ...builtin(stepOf(panel)) };
    for (const target of panel.targets ?? []) {
      target.legendFormat = fill(target.legendFormat, values);
    }
    panel.answers = await Promise.all((panel.targets ?? []).map((target) => answerOf(target, stepOf(panel), all)));
  }
  return { title: dashboard.title, variables: choices.shown, panels, from: from * 1000, to: to * 1000 };
}

// keepRows leaves out all rows but those that are asked for, and moves these up.
function keepRows(panels) {
  const kept = [];
  let keep = false;
  let up = 0; // by how much the present row moves
  let end = 0; // of what is kept
  for (const panel of panels) {
    if (panel.type === 'row') {
      keep = flags.row.includes(panel.title);
      up = panel.gridPos.y - end;
    }
    if (keep) {
      panel.gridPos = { ...panel.gridPos, y: panel.gridPos.y - up };
      end = Math.max(end, panel.gridPos.y + panel.gridPos.h);
      kept.push(panel);
    }
  }
  panels.splice(0, panels.length, ...kept);
}

const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.json': 'application/json' };

// Where Grafana's server has what its components fetch, and where npm has put it.
const fetched = [
  ['/public/build/img/', join(here, 'node_modules/@grafana/ui/dist/public/img/')],
  ['/public/fonts/inter/Inter-Regular.woff2', join(here, 'node_modules/@fontsource/inter/files/inter-latin-400-normal.woff2')],
  ['/public/fonts/inter/Inter-Medium.woff2', join(here, 'node_modules/@fontsource/inter/files/inter-latin-500-normal.woff2')],
];

// Serves the page, what it fetches and the dashboard's answers to the browser alone.
function serve(dir, answers) {
  const server = createServer(async (request, response) => {
    try {
      const path = normalize(new URL(request.url, 'http://x').pathname);
      const [from, to] = fetched.find(([place]) => path.startsWith(place)) ?? ['/', `${dir}/`];
      const body = path === '/answers.json' ? JSON.stringify(answers.now) : await readFile(to + path.slice(from.length));
      response.writeHead(200, { 'content-type': types[extname(path)] ?? 'application/octet-stream' }).end(body);
    } catch (error) {
      response.writeHead(404).end(String(error));
    }
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

const dir = await mkdtemp(join(tmpdir(), 'mpit-draw-page.'));
const answers = {};
let server, browser;
try {
  await build({
    entryPoints: [join(here, 'page.jsx')], outdir: dir, bundle: true, minify: true, format: 'esm', splitting: true, jsx: 'automatic',
    define: { 'process.env.NODE_ENV': '"production"', global: 'globalThis' }, loader: { '.woff': 'dataurl', '.woff2': 'dataurl', '.ttf': 'empty' }, logLevel: 'error',
  });
  await writeFile(join(dir, 'page.html'), '<!doctype html><link rel="icon" href="data:,"><link rel="stylesheet" href="page.css"><div id="page"></div><script type="module" src="page.js"></script>');
  await mkdir(flags.out, { recursive: true });
  server = await serve(dir, answers);
  browser = await chromium.launch({ executablePath: await executable(flags.chromium), args: ['--no-sandbox'] });
  const files = (await readdir(join(here, '..'))).filter((name) => name.endsWith('.json') && (!flags.only.length || flags.only.includes(name)));
  for (const name of files) {
    answers.now = await dashboardOf(join(here, '..', name));
    await draw(basename(name, '.json') + flags.suffix);
  }
} finally {
  await browser?.close();
  server?.close();
  await rm(dir, { recursive: true, force: true });
}

// executable finds a program on the PATH, for Playwright wants a whole path.
async function executable(name) {
  for (const place of name.includes('/') ? [''] : process.env.PATH.split(':')) {
    const path = join(place, name);
    if (await stat(path).then((s) => s.isFile(), () => false)) {
      return path;
    }
  }
  throw new Error(`there is no ${name} here`);
}

async function draw(name) {
  const width = Number(flags.width);
  const page = await browser.newPage({ viewport: { width, height: 800 }, timezoneId: 'UTC', locale: 'en-US' });
  page.setDefaultTimeout(180_000);
  page.on('response', (response) => response.ok() || console.error(`${name}: ${response.status()} ${new URL(response.url()).pathname}`));
  page.on('console', (message) => message.type() === 'error' && console.error(`${name}: ${message.text()}`));
  page.on('pageerror', (error) => console.error(`${name}: ${error.stack}`));
  await page.goto(`http://127.0.0.1:${server.address().port}/page.html`);
  await page.waitForFunction(() => window.drawn);
  const { height, empty } = await page.evaluate(() => window.drawn);
  await page.setViewportSize({ width, height });
  await page.waitForTimeout(1500); // charts are drawn when their size is known
  const picture = await page.screenshot();
  await page.close();
  const file = join(flags.out, `dashboard-${name}.png`);
  await writeFile(file, await sharp(picture).png({ palette: true, colours: 64, effort: 10, dither: 0 }).toBuffer());
  console.log(`${file}: ${width}x${height}, ${Math.ceil((await stat(file)).size / 1000)} kB; no data: ${empty.join(', ') || 'none'}`);
}
