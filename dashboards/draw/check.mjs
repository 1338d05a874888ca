// Holds the dashboards against Grafana's own schema: the types of @grafana/schema, in the version of the Grafana that docker-compose.yml
// runs, which are made of its CUE kinds. What the schema doesn't know, or knows otherwise, is an error. See docs/dashboards.md.
//
//   node check.mjs [FILE …]
import { readFile, readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const here = dirname(fileURLToPath(import.meta.url));
const schema = join(here, 'node_modules/grafana-schema-12/dist/types/raw');

const panels = {
  timeseries: 'timeseries/panelcfg/x/TimeSeriesPanelCfg', stat: 'stat/panelcfg/x/StatPanelCfg', table: 'table/panelcfg/x/TablePanelCfg',
  heatmap: 'heatmap/panelcfg/x/HeatmapPanelCfg',
};

const imports = () => [
  `import type * as grafana from '${schema}/dashboard/x/dashboard_types.gen';`,
  `import type * as common from '${join(schema, '../common/common.gen')}';`,
  ...Object.entries(panels).map(([type, file]) => `import type * as ${type} from '${schema}/composable/${file}_types.gen';`),
];

// Grafana has these in @grafana/data, and reads them; its schema doesn't name them.
const alsoThere = { fieldMinMax: 'boolean' };

// custom is what a panel type has in fieldConfig.defaults.custom; of a stat, nothing.
const custom = ({ type }) => ({ stat: 'Record<string, never>', table: 'common.TableFieldOptions' })[type] ?? `${type}.FieldConfig`;

// statements assign what a file says to the schema's types: to those of the dashboard, of each panel's options, and of each override.
function statements(dashboard) {
  const lines = [];
  const say = (what, type, value) => lines.push({ what, text: `export const c${lines.length}: ${type} = ${JSON.stringify(value)};` });
  // What the plugin of a data source reads of an annotation, the schema doesn't name.
  const list = dashboard.annotations.list.map(({ expr, titleFormat, ...annotation }) => annotation);
  say('the dashboard', 'grafana.Dashboard', { ...dashboard, annotations: { list } });
  for (const panel of dashboard.panels.flatMap((p) => [p, ...(p.panels ?? [])]).filter((p) => p.type !== 'row')) {
    if (!panels[panel.type]) {
      throw new Error(`${panel.title} is a ${panel.type}, of which check.mjs doesn't know the schema`);
    }
    say(`${panel.title}: options`, `${panel.type}.Options`, panel.options);
    say(`${panel.title}: fieldConfig.defaults.custom`, custom(panel), panel.fieldConfig.defaults.custom ?? {});
    for (const { matcher, properties } of panel.fieldConfig.overrides) {
      for (const { id, value } of properties) {
        const [, name] = id.match(/^custom\.(.+)/) ?? [];
        const type = alsoThere[id] ? `{ ${id}: ${alsoThere[id]} }` : name ? `Partial<${custom(panel)}>` : 'grafana.FieldConfig';
        say(`${panel.title}: override of ${matcher.options}`, type, { [name ?? id]: value });
      }
    }
  }
  return lines;
}

// JSON has strings where TypeScript wants members of enumerations: these become types of their strings.
const unions = (text) => text.replace(/export declare enum (\w+) \{([^}]*)\}/g, (_, name, body) => {
  const members = [...body.matchAll(/(\w+)\s*=\s*("[^"]*"|-?\d+)/g)];
  return `export type ${name} = ${members.map(([, , value]) => value).join(' | ')};`
    + `export declare namespace ${name} { ${members.map(([, member, value]) => `export type ${member} = ${value};`).join(' ')} }`;
});

function check(file, lines) {
  const options = { strict: true, noEmit: true, skipLibCheck: true, target: ts.ScriptTarget.ES2022, moduleResolution: ts.ModuleResolutionKind.Bundler, module: ts.ModuleKind.ES2022, types: [] };
  const host = ts.createCompilerHost(options);
  const source = [...imports(), ...lines.map(({ text }) => text)].join('\n');
  const read = host.getSourceFile.bind(host);
  host.getSourceFile = (name, version, ...more) => {
    if (name === file) {
      return ts.createSourceFile(name, source, version, true);
    }
    return name.startsWith(dirname(schema)) ? ts.createSourceFile(name, unions(ts.sys.readFile(name)), version, true) : read(name, version, ...more);
  };
  const program = ts.createProgram([file], options, host);
  const found = program.getSourceFile(file);
  return [...program.getSyntacticDiagnostics(found), ...program.getSemanticDiagnostics(found)].map(({ start, messageText }) => {
    const { line, character } = found.getLineAndCharacterOfPosition(start);
    const { what = 'imports', text = '' } = lines[line - imports().length] ?? {};
    return `${what}: …${text.slice(Math.max(0, character - 40), character + 60)}…\n    ${ts.flattenDiagnosticMessageText(messageText, '\n      ')}`;
  });
}

const files = process.argv.length > 2 ? process.argv.slice(2) : (await readdir(join(here, '..'))).filter((name) => name.endsWith('.json')).map((name) => join(here, '..', name));
// The version that this Grafana writes itself: newer files it would read as its own.
const [, version] = (await readFile(join(here, 'node_modules/grafana-schema-12/dist/esm/raw/dashboard/x/dashboard_types.gen.mjs'), 'utf8')).match(/schemaVersion: (\d+)/);
let mistakes = 0;
for (const file of files) {
  const dashboard = JSON.parse(await readFile(file, 'utf8'));
  const lines = statements(dashboard);
  const list = check(join(here, `${basename(file, '.json')}.ts`), lines);
  if (dashboard.schemaVersion !== Number(version)) {
    list.push(`schemaVersion is ${dashboard.schemaVersion}, not ${version}`);
  }
  for (const text of list) {
    console.error(`${basename(file)}: ${text}`);
  }
  mistakes += list.length;
  console.log(`${basename(file)}: ${lines.length} values held against the schema, ${list.length} mistakes`);
}
process.exitCode = mistakes ? 1 : 0;
