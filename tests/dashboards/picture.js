// SPDX-License-Identifier: Apache-2.0
// Draws a dashboard as Grafana lays it out. `dashboard` and its panels' `frames`, as picture.py has
// asked Prometheus for them, and uPlot are there already.
"use strict";

const NAMED = {
  green: "#73bf69", yellow: "#fade2a", orange: "#ff9830", red: "#f2495c", purple: "#b877d9",
  blue: "#5794f2", "light-blue": "#96d6ff", "light-yellow": "#d9c75a", text: "#ccccdc",
  transparent: "transparent",
};
const CLASSIC = [
  "#7eb26d", "#eab839", "#6ed0e0", "#ef843c", "#e24d42", "#1f78c1", "#ba43a9", "#705da0",
  "#508642", "#cca300",
];
const CELL = { width: 1560 / 24, height: 32, gap: 8 };
const LEGEND_ROW = 17;
const LEGEND_ROWS = 5;

const colorOf = (name) => NAMED[name] ?? name;

function scaled(value, steps) {
  const [factor, suffix] = steps.find(([at]) => value >= at) ?? steps.at(-1);
  if (factor === 1 && value < 1) return `${+value.toFixed(2)}${suffix}`;
  return `${+(value / factor).toPrecision(3)}${suffix}`;
}

function format(value, unit) {
  if (value === null || Number.isNaN(value)) return "";
  const times = [[60, " min"], [1, " s"], [1e-3, " ms"], [1e-6, " µs"]];
  const sizes = [[2 ** 30, " GiB"], [2 ** 20, " MiB"], [2 ** 10, " KiB"], [1, " B"]];
  const counts = [[1e6, " M"], [1e3, " K"], [1, ""]];
  if (value === 0) return { percentunit: "0%", bool_yes_no: "No" }[unit] ?? "0";
  switch (unit) {
    case "s": return scaled(value, times);
    case "percentunit": return `${+(value * 100).toFixed(1)}%`;
    case "bytes": return scaled(value, sizes);
    case "Bps": return `${scaled(value, sizes)}/s`;
    case "bool_yes_no": return "Yes";
    case "reqps": return `${scaled(value, counts)} req/s`;
    case "ops": case "cps": return `${scaled(value, counts)}/s`;
    default: return scaled(value, counts);
  }
}

function element(tag, className, text, parent) {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  parent?.append(made);
  return made;
}

function thresholdColor(value, steps) {
  return colorOf(steps.filter((step) => step.value === null || value >= step.value).at(-1).color);
}

function drawStat(panel, body) {
  const [series] = panel.frames;
  const value = series?.values[0] ?? null;
  const defaults = panel.fieldConfig.defaults;
  const made = element("div", "stat", format(value, defaults.unit), body);
  made.style.color = thresholdColor(value, defaults.thresholds.steps);
}

function drawTable(panel, body) {
  const table = element("table", "", "", body);
  const head = element("tr", "", "", table);
  for (const column of panel.columns) element("th", "", column.title, head);
  for (const row of panel.rows) {
    const line = element("tr", "", "", table);
    row.forEach((value, index) => {
      const column = panel.columns[index];
      const number = typeof value === "number";
      const cell = element("td", number ? "number" : "", number ? format(value, column.unit) : value ?? "", line);
      if (!column.steps || !number) return;
      const color = thresholdColor(value, column.steps);
      cell.style.background = color;
      if (color !== "transparent") cell.style.color = "#111";
    });
  }
}

function seriesColors(panel) {
  const fixed = {};
  for (const override of panel.fieldConfig.overrides)
    for (const property of override.properties)
      if (property.id === "color") fixed[override.matcher.options] = property.value.fixedColor;
  return panel.frames.map((frame, index) =>
    colorOf(fixed[frame.name] ?? CLASSIC[index % CLASSIC.length]));
}

// Each series on top of those before it.
function stack(frames) {
  let below = frames[0]?.values.map(() => 0) ?? [];
  return frames.map((frame) => (below = frame.values.map((value, i) => below[i] + (value ?? 0))));
}

function axes(unit) {
  const common = { stroke: "#9fa7b3", grid: { stroke: "#ffffff12", width: 1 }, ticks: { show: false },
    font: "11px sans-serif" };
  return [
    { ...common, space: 70, size: 24, values: [[3600, "{HH}:{mm}"], [1, "{HH}:{mm}:{ss}"]] },
    { ...common, size: 62, values: (_, values) => values.map((value) => format(value, unit)) },
  ];
}

const isStacked = (panel) => panel.fieldConfig.defaults.custom.stacking.mode === "normal";

// Stacked series, which are few, share two lines.
function legendRows(panel) {
  return isStacked(panel) ? 2 : Math.min(panel.frames.length, LEGEND_ROWS);
}

// The largest first, as many as there is room for.
function drawLegend(panel, colors, body) {
  const legend = element("div", isStacked(panel) ? "legend wide" : "legend", "", body);
  const last = (frame) => frame.values.filter((value) => value !== null).at(-1) ?? null;
  const entries = panel.frames.map((frame, index) => [frame.name, last(frame), colors[index]]);
  if (!isStacked(panel))
    entries.sort(([, left], [, right]) => (right ?? -1) - (left ?? -1));
  const room = isStacked(panel) ? entries.length : LEGEND_ROWS;
  for (const [name, value, color] of entries.slice(0, room)) {
    const line = element("div", "", "", legend);
    element("i", "", "", line).style.background = color;
    element("span", "", name, line);
    element("b", "", format(value, panel.fieldConfig.defaults.unit), line);
  }
}

function drawTimeSeries(panel, body, width, height) {
  const defaults = panel.fieldConfig.defaults;
  const stacked = isStacked(panel);
  const colors = seriesColors(panel);
  const lines = stacked ? stack(panel.frames) : panel.frames.map((frame) => frame.values);
  const order = [...lines.keys()];
  if (stacked) order.reverse(); // the largest first, the others painted over it
  const fill = stacked ? "ff" : "14"; // what lies below must not shine through
  new uPlot({
    width, height: height - legendRows(panel) * LEGEND_ROW - 6,
    legend: { show: false }, cursor: { show: false }, padding: [8, 12, 0, 0],
    scales: { y: { range: (_, low, high) => [0, defaults.max ?? (high > 0 ? high * 1.1 : 1)] } },
    axes: axes(defaults.unit),
    series: [{}, ...order.map((index) => ({
      stroke: colors[index], width: stacked ? 0.5 : 1.4,
      fill: colors[index].startsWith("#") ? colors[index] + fill : undefined, points: { show: false },
    }))],
  }, [panel.times, ...order.map((index) => lines[index])], body);
  drawLegend(panel, colors, body);
}

// Cumulative buckets become the share of each bucket.
function shares(frames) {
  let below = frames[0]?.values.map(() => 0) ?? [];
  return frames.map((frame) => {
    const own = frame.values.map((value, i) => Math.max(0, (value ?? 0) - below[i]));
    below = frame.values.map((value) => value ?? 0);
    return own;
  });
}

function heatColor(part) {
  const shade = part ** 0.5;
  return `rgba(255, ${Math.round(225 - 150 * shade)}, ${Math.round(170 - 150 * shade)}, ${0.15 + 0.85 * shade})`;
}

function drawHeatmap(panel, body, width, height) {
  const canvas = element("canvas", "", "", body);
  const pen = canvas.getContext("2d");
  const frames = panel.frames.filter((frame) => frame.name !== "+Inf");
  const rows = shares(frames);
  const most = Math.max(...rows.flat(), 1e-9);
  const left = 62, bottom = 20, step = (width - left - 12) / panel.times.length;
  const tall = (height - bottom - 8) / rows.length;
  canvas.width = width;
  canvas.height = height;
  pen.font = "11px sans-serif";
  rows.forEach((row, index) => {
    const y = 8 + (rows.length - 1 - index) * tall;
    row.forEach((value, at) => {
      if (value <= 0) return;
      pen.fillStyle = heatColor(value / most);
      pen.fillRect(left + at * step, y, step + 0.3, tall - 1);
    });
    pen.fillStyle = "#9fa7b3";
    pen.textAlign = "right";
    pen.fillText(format(Number(frames[index].name), "s"), left - 6, y + 4);
  });
  pen.textAlign = "center";
  for (let at = 0.1; at < 1; at += 0.27) {
    const time = new Date(1000 * panel.times[Math.floor(at * panel.times.length)]);
    pen.fillText(time.toTimeString().slice(0, 8), left + at * (width - left), height - 4);
  }
}

const DRAW = { stat: drawStat, table: drawTable, timeseries: drawTimeSeries, heatmap: drawHeatmap };

function place(panel) {
  const { x, y, w, h } = panel.gridPos;
  const box = element("section", panel.type, "", document.body);
  const width = w * CELL.width - CELL.gap, height = h * CELL.height - CELL.gap;
  Object.assign(box.style, {
    left: `${x * CELL.width + 16}px`, top: `${y * CELL.height + 56}px`,
    width: `${width}px`, height: `${height}px`,
  });
  element("h2", "", panel.title, box);
  if (panel.type === "row") return;
  const body = element("div", "body", "", box);
  if (panel.frames && !panel.frames.length) element("div", "none", "No data", body);
  else DRAW[panel.type](panel, body, width - 16, height - 36);
}

element("h1", "", dashboard.title, document.body);
element("p", "", dashboard.subtitle, document.body);
dashboard.panels.forEach(place);
