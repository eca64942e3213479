// Draws every <div data-plot="id of its JSON"> with uPlot, in the theme's colours, and again where
// the width or the theme changes or a live part brought new numbers.
"use strict";

(() => {
  const drawn = new Map();
  const SERIES = 9;

  const colour = (name) => {
    // A custom property may be light-dark(): what it comes to is only told for a real property.
    const probe = document.createElement("span");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  const short = (number) => {
    for (const [step, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
      if (Math.abs(number) >= step) return `${+(number / step).toFixed(1)}${letter}`;
    }
    return String(+number.toFixed(2));
  };

  // Instants are UTC and written as on the rest of the page.
  const written = (at, from, to) => new Date(at * 1000).toISOString().replace("T", " ").slice(from, to);
  const instants = (_, ticks, _axis, _space, step) => ticks.map((at) => (step >= 86400 ? written(at, 5, 10) : written(at, 11, step < 60 ? 19 : 16)));
  // Bars stand in the middle of their instant: half a step is left beside the first and the last.
  const padded = (x) => (_, low, high) => {
    const step = x.length > 1 ? (x[x.length - 1] - x[0]) / (x.length - 1) : 86400;
    return [low - step / 2, high + step / 2];
  };

  const draw = (box) => {
    const text = document.getElementById(box.dataset.plot).textContent;
    if (!text.trim()) return; // a page that gathers its figures itself has none yet
    box.hidden = false;
    const width = box.clientWidth;
    const before = drawn.get(box);
    if (before && before.text === text && before.width === width) return;
    before?.plot.destroy();
    const data = JSON.parse(text);
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
    const bars = data.kind === "bars" ? uPlot.paths.bars({ size: [0.7, 40], align: 0 }) : undefined;
    // Stacked: each series is drawn from 0 up to its own top, the topmost first, and says its own value.
    const sums = data.x.map(() => 0);
    const tops = data.series.map((each) => (data.stacked ? each.values.map((value, row) => (sums[row] += value ?? 0)) : each.values));
    const own = data.series.map((each) => each.values);
    if (data.stacked) { tops.reverse(); own.reverse(); }
    const named = data.stacked ? [...data.series].reverse() : data.series;
    const series = named.map((each, index) => {
      const at = data.stacked ? data.series.length - 1 - index : index;
      const stroke = colour(`--series-${(at % SERIES) + 1}`);
      return { label: each.name, stroke, width: bars ? 0 : 1.5, fill: bars ? stroke : undefined, paths: bars, points: { show: false }, value: (_, value, _series, row) => (row === null ? "" : value === null ? "not known" : `${(own[index][row] ?? 0).toLocaleString("en")} ${data.unit ?? ""}`) };
    });
    const options = {
      width, height: 240,
      tzDate: (at) => uPlot.tzDate(new Date(at * 1e3), "UTC"),
      cursor: { drag: { x: false, y: false } },
      scales: { x: { time: data.time !== false, range: bars ? padded(data.x) : undefined }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.08 : 1] } },
      axes: [data.time === false ? axis : { ...axis, values: instants }, { ...axis, size: 56, values: (_, ticks) => ticks.map(short) }],
      series: [{ label: data.time === false ? "At" : "UTC", value: (_, at) => (at === null ? "" : data.time === false ? at : written(at, 0, 16)) }, ...series],
    };
    const plot = new uPlot(options, [data.x, ...tops], box);
    if (data.stacked) {
      // The legend names the series as the table does, the lowest first; a stack has none to hide.
      const rows = [...box.querySelectorAll(".u-legend .u-series")].slice(1);
      rows.reverse().forEach((row) => row.parentNode.append(row));
      box.classList.add("is-stacked");
    }
    drawn.set(box, { plot, text, width });
  };
  const all = () => {
    for (const box of document.querySelectorAll("[data-plot]")) draw(box);
    for (const [box, { plot }] of drawn) {
      if (!box.isConnected) { plot.destroy(); drawn.delete(box); }
    }
  };

  const again = () => { drawn.forEach((each) => { each.text = null; }); all(); };
  let waiting = 0;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(all, 120); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  document.addEventListener("htmx:after:swap", all);
  all();
})();
