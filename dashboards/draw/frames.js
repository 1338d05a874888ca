// Prometheus' answers as Grafana's data frames: what its data source for Prometheus makes of them, transformed and with
// the panel's options for each field.
import { lastValueFrom } from "rxjs";
import {
  FieldType,
  Registry,
  applyFieldOverrides,
  booleanOverrideProcessor,
  cacheFieldDisplayNames,
  dataLinksOverrideProcessor,
  identityOverrideProcessor,
  numberOverrideProcessor,
  standardTransformers,
  standardTransformersRegistry,
  stringOverrideProcessor,
  thresholdsOverrideProcessor,
  toDataFrame,
  transformDataFrame,
  unitOverrideProcessor,
  valueMappingsOverrideProcessor,
} from "@grafana/data";

const used = [
  standardTransformers.mergeTransformer,
  standardTransformers.organizeFieldsTransformer,
  standardTransformers.sortByTransformer,
  standardTransformers.groupingToMatrixTransformer,
];
standardTransformersRegistry.setInit(() =>
  used.map((transformation) => ({
    id: transformation.id,
    name: transformation.name,
    transformation: async () => transformation,
    editor: () => null,
  })),
);

// The options of a field that dashboards set, and how Grafana reads an override of each.
const processors = {
  unit: unitOverrideProcessor,
  decimals: numberOverrideProcessor,
  min: numberOverrideProcessor,
  max: numberOverrideProcessor,
  displayName: stringOverrideProcessor,
  noValue: stringOverrideProcessor,
  color: identityOverrideProcessor,
  thresholds: thresholdsOverrideProcessor,
  fieldMinMax: booleanOverrideProcessor,
  mappings: valueMappingsOverrideProcessor,
  links: dataLinksOverrideProcessor,
};

function registryFor({ defaults, overrides }) {
  const custom = new Set(Object.keys(defaults.custom ?? {}));
  for (const { id } of overrides.flatMap((o) => o.properties)) {
    if (id.startsWith("custom.")) {
      custom.add(id.slice("custom.".length));
    } else if (!processors[id]) {
      throw new Error(`dashboards/draw does not know overrides of ${id}`);
    }
  }
  const property = (id, path, process, isCustom) => ({
    id,
    path,
    name: id,
    process,
    isCustom,
    shouldApply: () => true,
    settings: {},
    override: () => null,
    editor: () => null,
  });
  return new Registry(() => [
    ...Object.entries(processors).map(([id, process]) => property(id, id, process, false)),
    ...[...custom].map((path) => property(`custom.${path}`, path, identityOverrideProcessor, true)),
  ]);
}

const time = (values) => ({ name: "Time", type: FieldType.time, config: {}, values });

const number = (text) => Number(text.replace("Inf", "Infinity"));

function legend(target, metric) {
  if (target.legendFormat) {
    return target.legendFormat
      .replace(/\{\{\s*(\w+)\s*\}\}/g, (_, name) => metric[name] ?? "")
      .replace(/ +/g, " ")
      .trim(); // a browser shows no more blanks
  }
  const { __name__: name = "", ...labels } = metric;
  const text = Object.entries(labels)
    .map(([label, value]) => `${label}="${value}"`)
    .join(", ");
  return name || text ? `${name}{${text}}` : target.expr;
}

// A frame for each series. Where a step has no value it gets none, as Grafana's panels do it before they draw: a gap is
// to be seen.
function series(target, answer, { step }) {
  return answer.result.map(({ metric, value, values = [value] }) => {
    const at = new Map(values.map(([t, text]) => [t * 1000, number(text)]));
    const [first, last] = [values[0][0] * 1000, values.at(-1)[0] * 1000];
    const times = Array.from({ length: (last - first) / step + 1 }, (_, i) => first + i * step);
    return toDataFrame({
      refId: target.refId,
      fields: [
        time(times),
        {
          name: "Value",
          type: FieldType.number,
          labels: metric,
          config: { displayNameFromDS: legend(target, metric) },
          values: times.map((t) => at.get(t) ?? null),
        },
      ],
    });
  });
}

// One frame for the whole answer: time, labels, value.
function table(target, answer, name) {
  const labels = [...new Set(answer.result.flatMap(({ metric }) => Object.keys(metric)))].sort();
  return toDataFrame({
    refId: target.refId,
    fields: [
      time(answer.result.map(({ value }) => value[0] * 1000)),
      ...labels.map((label) => ({
        name: label,
        type: FieldType.string,
        config: { filterable: true },
        values: answer.result.map(({ metric }) => metric[label] ?? ""),
      })),
      { name, type: FieldType.number, config: {}, values: answer.result.map(({ value }) => number(value[1])) },
    ],
  });
}

function frames(panel, range) {
  const answered = panel.targets
    .map((target, i) => ({ target, answer: panel.answers[i] }))
    .filter(({ answer }) => answer.result.length);
  return answered.flatMap(({ target, answer }) =>
    target.format === "table"
      ? table(target, answer, answered.length > 1 ? `Value #${target.refId}` : "Value")
      : series(target, answer, range),
  );
}

// prepare gives the frames that a panel of Grafana's would be given.
export async function prepare(panel, range, theme) {
  const data = await lastValueFrom(transformDataFrame(panel.transformations ?? [], frames(panel, range)));
  const shown = applyFieldOverrides({
    data,
    fieldConfig: panel.fieldConfig,
    fieldConfigRegistry: registryFor(panel.fieldConfig),
    replaceVariables: (text) => text,
    theme,
    timeZone: "utc",
  });
  cacheFieldDisplayNames(shown);
  return shown;
}
