// Panels, as Grafana's plugins for them make them of the components of @grafana/ui.
import { dateTime, getDisplayValueAlignmentFactors, getFieldDisplayValues } from '@grafana/data';
import { BigValue, TimeSeries, VizRepeater } from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import { Heatmap } from './heatmap.jsx';

const ranged = ({ from, to }) => ({ from: dateTime(from), to: dateTime(to), raw: { from: dateTime(from), to: dateTime(to) } });

const Graph = ({ panel, data, range, width, height }) => (
  <TimeSeries frames={data} timeRange={ranged(range)} timeZone="utc" width={width} height={height} legend={panel.options.legend} options={panel.options} />
);

const displayed = ({ panel, data, theme }) => getFieldDisplayValues({
  data, theme, fieldConfig: panel.fieldConfig, reduceOptions: panel.options.reduceOptions, replaceVariables: (text) => text, timeZone: 'utc',
});

function Stat(props) {
  const { panel: { options }, data, theme, width, height } = props;
  return (
    <VizRepeater
      source={data} renderCounter={1} width={width} height={height} autoGrid orientation={options.orientation} itemSpacing={3}
      getValues={() => displayed(props)}
      getAlignmentFactors={getDisplayValueAlignmentFactors}
      renderValue={({ value, width: w, height: h, count, alignmentFactors }) => (
        <BigValue
          value={value.display} count={count} width={w} height={h} theme={theme} alignmentFactors={alignmentFactors} colorMode={options.colorMode}
          graphMode={options.graphMode} justifyMode={options.justifyMode} textMode={options.textMode} disableWideLayout={!options.wideLayout}
        />
      )}
    />
  );
}

const Table = ({ panel, data, range, width, height }) => (
  <TableNG
    data={data[0]} width={width} height={height} noHeader={!panel.options.showHeader} cellHeight={panel.options.cellHeight} sortBy={panel.options.sortBy}
    timeRange={ranged(range)} resizable fieldConfig={panel.fieldConfig} enableVirtualization={false}
  />
);

export const panels = { timeseries: Graph, stat: Stat, heatmap: Heatmap, table: Table };
