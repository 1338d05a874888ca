// A heat map by uPlot, which Grafana's own panel draws with. That panel is no component of @grafana/ui, so this is another one, which
// does with the panel's options what it does: where rows and cells lie, which color a value has, which rows are named.
import { useEffect, useRef } from 'react';
import * as chromatic from 'd3-scale-chromatic';
import uPlot from 'uplot';
import { formattedValueToString, getFieldDisplayName, getValueFormat } from '@grafana/data';

// Schemes whose first color is that of the lowest values on a light page. Those that aren't here are turned round there.
const lightFirst = ['Blues', 'Greens', 'Greys', 'Oranges', 'Purples', 'Reds'];

function palette({ scheme, reverse, steps }) {
  const colors = Array.from({ length: steps }, (_, i) => chromatic[`interpolate${scheme}`](i / (steps - 1)));
  return reverse || !lightFirst.includes(scheme) ? colors.reverse() : colors;
}

// rowsOf are names and values by time. Names that are numbers are in their order; of a histogram's buckets each has what is not in the
// ones below.
function rowsOf(frames, buckets) {
  const rows = frames.map((frame) => {
    const [times, values] = frame.fields;
    return { name: getFieldDisplayName(values, frame, frames), at: new Map(times.values.map((t, i) => [t, values.values[i]])), unit: values.config.unit };
  });
  const number = ({ name }) => Number(name.replace('Inf', 'Infinity'));
  if (rows.every((row) => !Number.isNaN(number(row)))) {
    rows.sort((a, b) => number(a) - number(b));
  }
  if (buckets) {
    for (let i = rows.length - 1; i > 0; i--) {
      rows[i].at = new Map([...rows[i].at].map(([t, v]) => [t, v - (rows[i - 1].at.get(t) ?? 0)]));
    }
  }
  return rows;
}

// Half of the names are left out until the others have ten pixels each.
function named(count, height) {
  let rows = Array.from({ length: count }, (_, i) => i);
  while (rows.length > 3 && (height - 15) / rows.length < 10) {
    rows = rows.filter((_, i) => i % 2 === 0);
  }
  return rows;
}

const format = (unit) => (v) => formattedValueToString(getValueFormat(unit)(v));

export function Heatmap({ panel, data, range, theme, width, height }) {
  const place = useRef();
  const { options } = panel;
  const buckets = panel.targets[0].format === 'heatmap';
  const rows = rowsOf(data, buckets);
  const shown = rows.flatMap(({ at }) => [...at.values()]).filter((v) => v != null && v > options.filterValues.le);
  const low = options.color.min ?? shown.reduce((a, b) => Math.min(a, b), Infinity);
  const high = options.color.max ?? shown.reduce((a, b) => Math.max(a, b), -Infinity);
  const colors = palette(options.color);
  const colorOf = (v) => colors[Math.max(0, Math.min(colors.length - 1, Math.floor(((v - low) / (high - low || 1)) * colors.length)))];
  const scale = 34; // of the scale of colors below
  const value = format(options.cellValues.unit || rows[0].unit);
  const rowName = format(options.yAxis.unit);

  useEffect(() => {
    const stroke = theme.colors.text.primary;
    const font = `12px ${theme.typography.fontFamily}`;
    const splits = named(rows.length, height - scale);
    const text = (i) => (Number.isNaN(Number(rows[i].name)) ? rows[i].name : rowName(Number(rows[i].name)));
    const widest = Math.max(...splits.map((i) => text(i).length));
    const down = buckets ? 1 : 0.5; // a bucket lies below its bound
    const plot = new uPlot({
      width, height: height - scale,
      legend: { show: false }, cursor: { show: false },
      tzDate: (t) => uPlot.tzDate(new Date(t * 1000), 'UTC'),
      scales: { x: { range: () => [range.from / 1000, range.to / 1000] }, y: { range: () => [-down, rows.length - down], dir: options.yAxis.reverse ? -1 : 1 } },
      series: [{}, { paths: () => null, points: { show: false } }],
      axes: [
        { stroke, font, grid: { show: false }, values: '{HH}:{mm}:{ss}', space: 90 },
        { stroke, font, grid: { show: false }, splits: () => splits, values: () => splits.map(text), size: 24 + 7 * widest, label: options.yAxis.axisLabel, labelFont: font, labelSize: options.yAxis.axisLabel ? 20 : 0 },
      ],
      hooks: {
        drawAxes: [({ ctx, bbox, valToPos }) => {
          const at = (v, scaleName) => Math.round(valToPos(v, scaleName, true));
          ctx.save();
          ctx.beginPath();
          ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
          ctx.clip();
          rows.forEach((row, i) => {
            const ends = [at(i - down, 'y'), at(i + 1 - down, 'y')].sort((a, b) => a - b);
            for (const [t, v] of row.at) {
              if (v != null && v > options.filterValues.le) {
                const left = at((t - range.step) / 1000, 'x'); // a point stands for the time before it
                ctx.fillStyle = colorOf(v);
                ctx.fillRect(left, ends[0], at(t / 1000, 'x') - left, ends[1] - ends[0]);
              }
            }
          });
          ctx.restore();
        }],
      },
    }, [[range.from / 1000, range.to / 1000], [0, rows.length - 1]], place.current);
    return () => plot.destroy();
  });

  return (
    <div>
      <div ref={place} />
      <div style={{ display: 'flex', gap: 8, alignItems: 'center', height: scale, fontSize: 12 }}>
        {value(low)}
        <div style={{ width: 180, height: 10, background: `linear-gradient(to right, ${colors.join(',')})` }} />
        {value(high)}
      </div>
    </div>
  );
}
