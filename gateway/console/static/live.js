// The live page's plot: of what this page itself has seen, ten minutes of it at most. Nothing is
// kept anywhere else, and nothing more is asked of the gateway for it.
"use strict";

(() => {
  const KEPT_S = 600;
  const GAP_S = 10;
  const SERIES = [["charged in the last minute", "tokens"], ["queued, interactive", "interactive"], ["queued, batch", "batch"]];
  const points = [];

  const number = (text) => (text === "" || text === undefined ? null : Number(text));
  const note = () => {
    const point = document.getElementById("live-point");
    const figure = document.getElementById("live-history");
    if (!point || !figure) return;
    const at = Math.floor(Number(point.dataset.at) / 1000);
    const last = points.at(-1);
    if (last && at <= last.at) return;
    // What nobody looked at is not known: no line is drawn over it.
    if (last && at - last.at > GAP_S) points.push({ at: last.at + 1, values: SERIES.map(() => null) });
    points.push({ at, values: SERIES.map(([, name]) => number(point.dataset[name])) });
    while (points[0].at < at - KEPT_S) points.shift();
    if (points.length < 3) return;
    const series = SERIES.map(([name], row) => ({ name, values: points.map((each) => each.values[row]) }));
    document.getElementById("live-history-data").textContent = JSON.stringify({ x: points.map((each) => each.at), unit: "tokens", kind: "line", series });
    figure.querySelector(".plot").dataset.plot = "live-history-data";
    figure.hidden = false;
  };

  // Before plots.js, which draws what it then finds.
  document.addEventListener("htmx:after:swap", note);
  note();
})();
