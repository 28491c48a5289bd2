// Draws the charts and the map from the JSON in the page, in light or dark colours.
(function () {
  "use strict";

  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const element = (id) => document.getElementById(id);
  const charts = read("chart-data");
  const map = read("map-data");
  const darkColours = read("theme-data");
  const darkMode = window.matchMedia("(prefers-color-scheme: dark)");
  const colours = { venue: "#b9c0c6", released: "#0072b2", clean: "#d55e00", joint: "#57616b", ink: "#1b2126", surface: "#ffffff", grid: "#e3e6e8", muted: "#57616b", inside: "#fffffe" };
  let printing = false;

  function recoloured(value) {
    if (typeof value === "string") return (darkMode.matches && !printing && darkColours[value]) || value;
    if (Array.isArray(value)) return typeof value[0] === "number" ? value.slice() : value.map(recoloured);
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, recoloured(inner)]));
    }
    return value;
  }

  // Plotly interprets some tags in its texts; names from the data must stay text.
  const escaped = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const quiet = { displayModeBar: false, responsive: true, showTips: false };

  function drawCharts() {
    for (const chart of charts) {
      const place = element("plot-" + chart.id);
      const layout = recoloured(chart.layout);
      if (place.clientWidth < 480) layout.font = { ...layout.font, size: 12 };
      Plotly.react(place, recoloured(chart.data), layout, quiet);
    }
  }

  // ---- the map
  const state = { method: 0, example: 0, step: 1, view: 0, timer: null };
  const place = element("plot-map");
  const slider = element("map-step");
  const example = () => map.examples[state.example];
  const side = () => example().sides[state.method];

  function hover(points, name) {
    return example().times.map((time, i) => {
      const lines = ["<b>" + escaped(points.venue[i]) + "</b>", escaped(points.category[i]), time + " UTC"].filter((line) => line);
      if (points.moved && points.moved[i] !== null) lines.push("moved " + points.moved[i] + " km");
      if (points.speed[i] !== null) lines.push(points.speed[i] + " km/h from the previous stop");
      return lines.join("<br>") + "<br><i>" + escaped(name) + "</i>";
    });
  }

  // At a venue with several visits, only the number of the last one is readable.
  const again = (points, i, n) => points.x.slice(i + 1, n).some((x, k) => x === points.x[i] && points.y[i + 1 + k] === points.y[i]);

  function path(points, name, colour, symbol, dash) {
    const n = state.step;
    const last = (small, large) => points.x.slice(0, n).map((_, i) => (i === n - 1 ? large : small));
    return {
      type: "scatter", mode: "lines+markers+text", name: escaped(name),
      x: points.x.slice(0, n), y: points.y.slice(0, n),
      text: points.x.slice(0, n).map((_, i) => (dash === "solid" && !again(points, i, n) ? String(i + 1) : "")), textposition: "middle center",
      textfont: { color: colours.inside, size: 12 },
      line: { color: colour, width: 2.5, dash: dash },
      marker: { color: colour, symbol: symbol, size: dash === "solid" ? last(21, 29) : last(11, 16), opacity: 1, line: { color: colours.surface, width: 1.5 } },
      hoverinfo: "text", hovertext: hover(points, name).slice(0, n),
    };
  }

  function joints(clean, released) {
    const x = [], y = [];
    for (let i = 0; i < state.step; i++) {
      x.push(clean.x[i], released.x[i], null);
      y.push(clean.y[i], released.y[i], null);
    }
    return { type: "scatter", mode: "lines", name: "moved", x: x, y: y, hoverinfo: "skip", line: { color: colours.joint, width: 1, dash: "dot" } };
  }

  function mapTraces() {
    const venues = {
      type: "scatter", mode: "markers", name: "venues", x: map.venues.x, y: map.venues.y, hoverinfo: "skip",
      marker: { color: colours.venue, size: 4 },
    };
    const released = path(side(), "released by " + map.methods[state.method], colours.released, "circle", "solid");
    if (!example().clean) return [venues, released];
    return [venues, joints(example().clean, side()), path(example().clean, "clean", colours.clean, "square", "dash"), released];
  }

  function bounds(xs, ys) {
    const known = (values) => values.filter((v) => v !== null);
    const [x, y] = [known(xs), known(ys)];
    if (!x.length) return { x: [-1, 1], y: [-1, 1] };
    const low = [Math.min(...x), Math.min(...y)], high = [Math.max(...x), Math.max(...y)];
    const half = Math.max(high[0] - low[0], high[1] - low[1], 0.6) * 0.5;
    const padded = (i) => {
      const middle = (low[i] + high[i]) / 2, reach = (high[i] - low[i]) / 2 + half * 0.3;
      return [middle - reach, middle + reach];
    };
    return { x: padded(0), y: padded(1) };
  }

  function dayBounds() {
    const sides = [side(), ...(example().clean ? [example().clean] : [])];
    return bounds(sides.flatMap((s) => s.x), sides.flatMap((s) => s.y));
  }

  function mapLayout(view) {
    const axis = (title) => ({
      title: { text: title, font: { size: 12, color: colours.muted } }, gridcolor: colours.grid, zeroline: false, automargin: true,
      tickfont: { size: 11, color: colours.muted }, linecolor: colours.grid,
    });
    const layout = {
      xaxis: axis("km east"), yaxis: { ...axis("km north"), scaleanchor: "x", scaleratio: 1 }, dragmode: "pan", hovermode: "closest",
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 8, r: 8, t: 8, b: 8 }, autosize: true,
      font: charts.length ? charts[0].layout.font : {}, uirevision: "map",
      hoverlabel: { bgcolor: colours.surface, bordercolor: colours.joint, font: { color: colours.ink }, align: "left" },
      legend: { orientation: "h", x: 0, y: 1.01, yanchor: "bottom" },
    };
    layout.xaxis.range = view.x;
    layout.yaxis.range = view.y;
    return recoloured(layout);
  }

  function currentView() {
    const full = place._fullLayout;
    return full ? { x: full.xaxis.range.slice(), y: full.yaxis.range.slice() } : dayBounds();
  }

  function drawMap(view) {
    Plotly.react(place, recoloured(mapTraces()), { ...mapLayout(view || currentView()), uirevision: ++state.view }, { ...quiet, scrollZoom: true, doubleClick: false });
    element("map-now").textContent = "check-in " + state.step + " of " + example().times.length + ", " + example().times[state.step - 1];
    slider.setAttribute("aria-valuetext", element("map-now").textContent);
    drawDay();
  }

  function addCell(row, text, kind) {
    const made = document.createElement("td");
    made.textContent = text;
    if (kind) made.className = kind;
    row.append(made);
  }

  function drawDay() {
    const body = element("day").tBodies[0];
    const released = side();
    body.replaceChildren(...example().times.map((time, i) => {
      const row = document.createElement("tr");
      row.className = i === state.step - 1 ? "now" : i >= state.step ? "later" : "";
      addCell(row, i + 1);
      addCell(row, time);
      if (example().clean) addCell(row, example().clean.venue[i]);
      addCell(row, released.venue[i]);
      addCell(row, released.category[i]);
      if (example().clean) addCell(row, released.moved[i] === null ? "" : released.moved[i].toFixed(2) + " km", "value");
      addCell(row, released.speed[i] === null ? "" : released.speed[i].toFixed(1) + " km/h", "value");
      return row;
    }));
  }

  function choose(list, names, change) {
    names.forEach((name, number) => list.add(new Option(name, number)));
    list.addEventListener("change", () => change(Number(list.value)));
  }

  function showExample(number) {
    state.example = number;
    state.step = example().times.length;
    slider.max = state.step;
    slider.value = state.step;
    drawMap(dayBounds());
  }

  function zoom(factor) {
    const view = currentView();
    const scaled = ([a, b]) => [(a + b) / 2 - ((b - a) / 2) * factor, (a + b) / 2 + ((b - a) / 2) * factor];
    drawMap({ x: scaled(view.x), y: scaled(view.y) });
  }

  function pan(east, north) {
    const view = currentView();
    const moved = ([a, b], share) => [a + (b - a) * share, b + (b - a) * share];
    drawMap({ x: moved(view.x, east), y: moved(view.y, north) });
  }

  function stop() {
    clearInterval(state.timer);
    state.timer = null;
    element("map-play").setAttribute("aria-pressed", "false");
    element("map-play").textContent = "Play";
  }

  function step(number) {
    state.step = number;
    slider.value = number;
    drawMap();
  }

  function play() {
    if (state.timer) return stop();
    const last = example().times.length;
    step(state.step >= last ? 1 : state.step);
    element("map-play").setAttribute("aria-pressed", "true");
    element("map-play").textContent = "Pause";
    state.timer = setInterval(() => (state.step < last ? step(state.step + 1) : stop()), 900);
  }

  function startMap() {
    if (!map.examples.length) return;
    choose(element("map-method"), map.methods, (number) => { state.method = number; drawMap(dayBounds()); });
    choose(element("map-example"), map.examples.map((e) => e.label), (number) => { stop(); showExample(number); });
    slider.addEventListener("input", () => { stop(); step(Number(slider.value)); });
    element("map-play").addEventListener("click", play);
    element("zoom-in").addEventListener("click", () => zoom(1 / 1.5));
    element("zoom-out").addEventListener("click", () => zoom(1.5));
    element("zoom-day").addEventListener("click", () => drawMap(dayBounds()));
    element("zoom-city").addEventListener("click", () => drawMap(bounds(map.venues.x, map.venues.y)));
    const keys = {
      "+": () => zoom(1 / 1.5), "=": () => zoom(1 / 1.5), "-": () => zoom(1.5), "0": () => drawMap(dayBounds()),
      ArrowLeft: () => pan(-0.15, 0), ArrowRight: () => pan(0.15, 0), ArrowUp: () => pan(0, 0.15), ArrowDown: () => pan(0, -0.15),
    };
    place.addEventListener("keydown", (event) => {
      if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
      keys[event.key]();
      event.preventDefault();
    });
    // The wheel scrolls the page until the map is in focus.
    place.addEventListener("wheel", (event) => { if (document.activeElement !== place) event.stopPropagation(); }, true);
    place.addEventListener("pointerdown", () => place.focus({ preventScroll: true }));
    showExample(0);
  }

  // ---- tables that sort when a heading is clicked
  function sortable(table) {
    const headings = [...table.tHead.rows[0].cells];
    const value = (row, column) => {
      const found = row.cells[column];
      const number = parseFloat(found.dataset.value ?? found.textContent);
      return Number.isNaN(number) ? found.textContent.trim().toLowerCase() : number;
    };
    const compare = (a, b) => {
      if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
      return a < b ? -1 : a > b ? 1 : 0;
    };
    headings.forEach((heading, column) => {
      heading.querySelector("button").addEventListener("click", () => {
        const up = heading.getAttribute("aria-sort") === "descending" || (!heading.hasAttribute("aria-sort") && column < 2);
        headings.forEach((other) => other.removeAttribute("aria-sort"));
        heading.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = [...table.tBodies[0].rows];
        rows.sort((a, b) => (up ? 1 : -1) * compare(value(a, column), value(b, column)));
        table.tBodies[0].append(...rows);
      });
    });
  }

  function drawAll() {
    drawCharts();
    if (map.examples.length && place._fullLayout) drawMap();
  }

  document.querySelectorAll("table.sortable").forEach(sortable);
  drawCharts();
  startMap();
  darkMode.addEventListener("change", drawAll);
  window.addEventListener("beforeprint", () => { printing = true; drawAll(); });
  window.addEventListener("afterprint", () => { printing = false; drawAll(); });
  document.documentElement.dataset.ready = "yes";
})();
