// What Grafana does with a dashboard's variables before it asks Prometheus.

const reference = /\$(\w+)|\$\{(\w+)(?::\w+)?\}/g;

// fill puts values into a query. What is no variable stays, such as label_replace's $1.
export const fill = (query, values) => query.replace(reference, (found, short, long) => values[short ?? long] ?? found);

// title does the same for what people read.
export const title = (text, choices) => fill(text ?? '', choices.texts);

const escape = (text) => text.replace(/[\\^$*+?.()|[\]{}]/g, '\\\\$&');

// choose chooses what a dashboard shows when it is opened: all of a variable that can have all, else the wanted value or the first.
export async function choose(dashboard, builtin, labelValues, wanted) {
  const values = { ...builtin };
  const texts = {};
  const shown = [];
  for (const v of dashboard.templating.list) {
    let value = 'Prometheus';
    let text = value;
    if (v.type === 'query') {
      const [, selector, label] = v.query.query.match(/^label_values\((.+), ([a-z_]+)\)$/);
      let found = await labelValues(fill(selector, values), label);
      if (v.regex) {
        found = found.map((name) => name.match(new RegExp(`^(?:${v.regex})$`))?.[1]).filter(Boolean);
      }
      if (found.includes(wanted[v.name])) {
        value = text = wanted[v.name];
      } else if (v.includeAll) {
        value = v.allValue || (found.length ? `(${found.map(escape).join('|')})` : '');
        text = 'All';
      } else {
        value = text = found[0] ?? '';
      }
    }
    values[v.name] = value;
    texts[v.name] = text;
    if (v.hide === 0) {
      shown.push({ label: v.label, text });
    }
  }
  return { values, texts, shown };
}
