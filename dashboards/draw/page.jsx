// One dashboard, as Grafana's own components draw it.
import { createRoot } from 'react-dom/client';
import { ThemeContext, createTheme, setTimeZoneResolver } from '@grafana/data';
import { GlobalStyles, Icon, PanelChrome } from '@grafana/ui';
import 'uplot/dist/uPlot.min.css';
import { prepare } from './frames.js';
import { panels } from './panels.jsx';

// Grafana's grid: 24 columns, rows of 30 pixels, gaps of 8.
const row = 30;
const gap = 8;

window.__grafana_public_path__ = '/public/';
window.grafanaBootData = { settings: {}, user: {} };
setTimeZoneResolver(() => 'utc');

const theme = createTheme({ colors: { mode: 'light' } });

function Place({ at, children }) {
  const column = (window.innerWidth - gap) / 24;
  const box = {
    left: gap + at.x * column, top: at.y * (row + gap), width: at.w * column - gap, height: at.h * (row + gap) - gap,
  };
  return <div style={{ position: 'absolute', ...box }}>{children(box.width, box.height)}</div>;
}

function Row({ panel }) {
  return (
    <div style={{ display: 'flex', alignItems: 'center', gap, height: row, fontSize: theme.typography.h5.fontSize, fontWeight: 500 }}>
      <Icon name={panel.collapsed ? 'angle-right' : 'angle-down'} />
      {panel.title}
      {panel.collapsed && <span style={{ color: theme.colors.text.disabled, fontWeight: 400 }}>({panel.panels.length} panels)</span>}
    </div>
  );
}

function Panel({ panel, data, range, width, height }) {
  const Drawn = panels[panel.type];
  const inner = (w, h) => {
    // Stats say themselves that there is nothing.
    return data.length || panel.type === 'stat' ? <Drawn panel={panel} data={data} range={range} theme={theme} width={w} height={h} /> : <Middle>No data</Middle>;
  };
  return (
    <PanelChrome title={panel.title} description={panel.description} width={width} height={height} padding={panel.type === 'table' ? 'none' : 'md'}>
      {inner}
    </PanelChrome>
  );
}

const Middle = ({ children }) => (
  <div style={{ display: 'flex', height: '100%', alignItems: 'center', justifyContent: 'center', color: theme.colors.text.secondary }}>{children}</div>
);

const Variable = ({ label, text }) => (
  <div style={{ display: 'flex', border: `1px solid ${theme.colors.border.medium}`, borderRadius: 2, lineHeight: '30px', background: theme.colors.background.primary }}>
    <span style={{ padding: '0 8px', fontWeight: 500, borderRight: `1px solid ${theme.colors.border.medium}` }}>{label}</span>
    <span style={{ padding: '0 8px' }}>{text}</span>
  </div>
);

const answers = await (await fetch('answers.json')).json();
const rangeOf = (panel) => ({ from: answers.from, to: answers.to, step: panel.step });
const prepared = await Promise.all(answers.panels.map((panel) => (panel.type === 'row' ? [] : prepare(panel, rangeOf(panel), theme))));
const height = gap + Math.max(...answers.panels.map((p) => p.gridPos.y + p.gridPos.h)) * (row + gap);

createRoot(document.getElementById('page')).render(
  <ThemeContext.Provider value={theme}>
    <GlobalStyles />
    <div id="dashboard" style={{ position: 'absolute', top: 0, left: 0, right: 0, background: theme.colors.background.canvas }}>
      <div style={{ padding: gap, display: 'flex', flexWrap: 'wrap', gap, alignItems: 'center', alignContent: 'center' }}>
        <div style={{ fontSize: theme.typography.h4.fontSize, fontWeight: 500, width: '100%' }}>{answers.title}</div>
        {answers.variables.map((v) => <Variable key={v.label} {...v} />)}
      </div>
      <div style={{ position: 'relative', height }}>
        {answers.panels.map((panel, i) => (
          <Place key={i} at={panel.gridPos}>
            {(w, h) => (panel.type === 'row' ? <Row panel={panel} /> : <Panel panel={panel} data={prepared[i]} range={rangeOf(panel)} width={w} height={h} />)}
          </Place>
        ))}
      </div>
    </div>
  </ThemeContext.Provider>,
);

await document.fonts.ready;
const empty = answers.panels.filter((p, i) => p.type !== 'row' && !prepared[i].length).map((p) => p.title);
setTimeout(() => { window.drawn = { height: document.getElementById('dashboard').offsetHeight, empty }; }, 500);
