// The map of a day, from the JSON in the page.
(function () {
  "use strict";

  const element = (id) => document.getElementById(id);
  const map = JSON.parse(element("map-data").textContent);
  const state = { method: 0, example: 0, step: 1, view: null, held: null };
  const place = element("plot-map");
  const slider = element("map-step");
  const example = () => map.examples[state.example];
  const side = () => example().sides[state.method];

  function made(name, attributes, text) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    return node;
  }

  function said(points, i, name) {
    const parts = [(i + 1) + ". " + points.venue[i], points.category[i], example().times[i] + " UTC"];
    if (points.moved && points.moved[i] !== null) parts.push("moved " + points.moved[i] + " km");
    if (points.speed[i] !== null) parts.push(points.speed[i] + " km/h from the previous stop");
    return parts.filter((part) => part).join(", ") + " (" + name + ")";
  }

  function dayView() {
    const sides = [side(), ...(example().clean ? [example().clean] : [])];
    const known = (axis) => sides.flatMap((s) => s[axis]).filter((v) => v !== null);
    const span = (values) => (values.length ? [Math.min(...values), Math.max(...values)] : [-1, 1]);
    const [x, y] = [span(known("x")), span(known("y"))];
    return { x: (x[0] + x[1]) / 2, y: (y[0] + y[1]) / 2, wide: 1.25 * Math.max(x[1] - x[0], 0.6), high: 1.25 * Math.max(y[1] - y[0], 0.6) };
  }

  function scale() {
    const width = place.clientWidth, height = place.clientHeight;
    const px = Math.min(width / state.view.wide, height / state.view.high);
    return { px, x: (km) => width / 2 + (km - state.view.x) * px, y: (km) => height / 2 - (km - state.view.y) * px, width, height };
  }

  function path(points, name, kind, to) {
    const shown = [];
    for (let i = 0; i < state.step; i++) if (points.x[i] !== null) shown.push(i);
    const group = made("g", { class: kind });
    group.append(made("path", { class: "way", d: shown.map((i, k) => (k ? "L" : "M") + to.x(points.x[i]) + " " + to.y(points.y[i])).join("") }));
    for (const i of shown) {
      const last = i === state.step - 1, size = kind === "clean" ? (last ? 8 : 6) : (last ? 15 : 11);
      const [x, y] = [to.x(points.x[i]), to.y(points.y[i])];
      const stop = made("g", { class: "stop", "data-t": said(points, i, name) });
      stop.append(kind === "clean"
        ? made("rect", { x: x - size, y: y - size, width: 2 * size, height: 2 * size })
        : made("circle", { cx: x, cy: y, r: size }));
      if (kind === "released") stop.append(made("text", { x, y, dy: ".35em", "text-anchor": "middle" }, i + 1));
      group.append(stop);
    }
    return group;
  }

  function drawMap() {
    const to = scale(), drawing = made("svg", { width: "100%", height: "100%" });
    const inside = (x, y) => x > 0 && y > 0 && x < to.width && y < to.height;
    const dots = map.venues.x.map((x, i) => [to.x(x), to.y(map.venues.y[i])]).filter(([x, y]) => inside(x, y));
    drawing.append(made("path", { class: "venues", d: dots.map(([x, y]) => "M" + x.toFixed(1) + " " + y.toFixed(1) + "h0").join("") }));
    if (example().clean) {
      const clean = example().clean, released = side();
      const joints = clean.x.slice(0, state.step).map((x, i) => (released.x[i] === null ? ""
        : "M" + to.x(x) + " " + to.y(clean.y[i]) + "L" + to.x(released.x[i]) + " " + to.y(released.y[i])));
      drawing.append(made("path", { class: "joints", d: joints.join("") }), path(clean, "clean", "clean", to));
    }
    drawing.append(path(side(), "released by " + map.methods[state.method], "released", to));
    const round = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 500].find((km) => km * to.px > 60) || 1000;
    drawing.append(made("path", { class: "scale", d: "M12 " + (to.height - 14) + "h" + round * to.px }),
      made("text", { class: "tick", x: 12, y: to.height - 20 }, round + " km"));
    place.replaceChildren(drawing);
    const now = "check-in " + state.step + " of " + example().times.length + ", " + example().times[state.step - 1];
    element("map-now").textContent = now;
    slider.setAttribute("aria-valuetext", now);
    drawDay();
  }

  function addCell(row, text, kind) {
    const cell = document.createElement("td");
    cell.textContent = text;
    if (kind) cell.className = kind;
    row.append(cell);
  }

  function drawDay() {
    const released = side(), clean = example().clean;
    element("day").tBodies[0].replaceChildren(...example().times.map((time, i) => {
      const row = document.createElement("tr");
      row.className = i === state.step - 1 ? "now" : i >= state.step ? "later" : "";
      addCell(row, i + 1);
      addCell(row, time);
      if (clean) addCell(row, clean.venue[i]);
      addCell(row, released.venue[i]);
      addCell(row, released.category[i]);
      if (clean) addCell(row, released.moved[i] === null ? "" : released.moved[i].toFixed(2) + " km", "value");
      addCell(row, released.speed[i] === null ? "" : released.speed[i].toFixed(1) + " km/h", "value");
      return row;
    }));
  }

  function show(view) {
    state.view = view;
    drawMap();
  }

  function step(number) {
    state.step = number;
    slider.value = number;
    drawMap();
  }

  function showExample(number) {
    state.example = number;
    slider.max = state.step = example().times.length;
    slider.value = state.step;
    show(dayView());
  }

  const zoom = (factor) => show({ ...state.view, wide: state.view.wide * factor, high: state.view.high * factor });
  const pan = (east, north) => show({ ...state.view, x: state.view.x + east * state.view.wide, y: state.view.y + north * state.view.high });

  function choose(list, names, change) {
    names.forEach((name, number) => list.add(new Option(name, number)));
    list.addEventListener("change", () => change(Number(list.value)));
  }

  function startMap() {
    if (!map.examples.length) return;
    choose(element("map-method"), map.methods, (number) => { state.method = number; show(dayView()); });
    choose(element("map-example"), map.examples.map((e) => e.label), showExample);
    slider.addEventListener("input", () => step(Number(slider.value)));
    element("zoom-in").addEventListener("click", () => zoom(1 / 1.5));
    element("zoom-out").addEventListener("click", () => zoom(1.5));
    element("zoom-day").addEventListener("click", () => show(dayView()));
    const keys = {
      "+": () => zoom(1 / 1.5), "=": () => zoom(1 / 1.5), "-": () => zoom(1.5), "0": () => show(dayView()),
      ArrowLeft: () => pan(-0.15, 0), ArrowRight: () => pan(0.15, 0), ArrowUp: () => pan(0, 0.15), ArrowDown: () => pan(0, -0.15),
    };
    place.addEventListener("keydown", (event) => {
      if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
      keys[event.key]();
      event.preventDefault();
    });
    place.addEventListener("pointerdown", (event) => { state.held = event.pointerType === "mouse" ? event : null; });
    window.addEventListener("pointerup", () => { state.held = null; });
    place.addEventListener("pointermove", (event) => {
      if (!state.held) return;
      const px = scale().px, before = state.held;
      state.held = event;
      show({ ...state.view, x: state.view.x - (event.clientX - before.clientX) / px, y: state.view.y + (event.clientY - before.clientY) / px });
    });
    new ResizeObserver(() => drawMap()).observe(place);
    showExample(0);
  }

  startMap();
})();
