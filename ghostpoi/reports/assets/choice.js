// Draws the settings that were tried, and finds the best one for the wishes in the form.
(function () {
  "use strict";

  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const element = (id) => document.getElementById(id);
  const { trials, lines, categories } = read("choice-data");
  const darkColours = read("theme-data");
  const darkMode = window.matchMedia("(prefers-color-scheme: dark)");
  const colour = (light) => (darkMode.matches && darkColours[light]) || light;
  const strictness = ["exact", "group", "any"];
  const charts = [
    { id: "flows", title: "flows that survive", value: (t) => t.flows },
    { id: "km", title: "mean displacement, km", value: (t) => t.mean_km },
  ];
  const dashes = ["solid", "dash", "dashdot", "dot"];
  let chosen = null;

  function wishes() {
    const number = (id, otherwise) => (element(id).value === "" ? otherwise : Number(element(id).value));
    return {
      km: number("wish-km", Infinity), flows: number("wish-flows", 0), popularity: number("wish-popularity", 1),
      category: element("wish-category").value,
    };
  }

  function fulfils(trial, wish) {
    return trial.mean_km <= wish.km && trial.flows >= wish.flows && trial.popularity <= wish.popularity
      && strictness.indexOf(trial.category) <= strictness.indexOf(wish.category);
  }

  // As `choose` decides: of the settings that faced all adversaries, if any, those as well protected as the best one, as far
  // as the test can tell; of these, the most useful one with few genuine rows.
  function best(possible) {
    const complete = possible.filter((t) => t.complete);
    const among = complete.length ? complete : possible;
    if (!among.length) return null;
    const least = among.reduce((a, b) => (b.worst < a.worst ? b : a));
    const error = 2 * Math.sqrt(2 * least.worst * (1 - least.worst) / least.test_positions);
    const alike = among.filter((t) => t.worst <= least.worst + error);
    const fewest = Math.min(...alike.map((t) => t.left_genuine));
    return alike.filter((t) => t.left_genuine <= fewest + 0.01)
      .reduce((a, b) => (b.flows > a.flows || (b.flows === a.flows && b.popularity < a.popularity) ? b : a));
  }

  function draw(wish) {
    const ink = colour("#1b2126"), muted = colour("#57616b"), grid = colour("#e3e6e8");
    for (const chart of charts) {
      const traces = Object.entries(categories).map(([category, [shade, name]]) => {
        const mine = trials.filter((t) => t.category === category);
        return {
          type: "scatter", mode: "markers", name: name, x: mine.map(chart.value), y: mine.map((t) => t.worst),
          customdata: mine.map((t) => t.number),
          text: mine.map((t) => t.name + "<br>worst case " + t.worst_text + " (" + t.strongest_text + ")<br>" + t.mean_km.toFixed(2)
            + " km, flows " + t.flows.toFixed(3)),
          hovertemplate: "%{text}<extra></extra>",
          marker: {
            color: colour(shade), size: mine.map((t) => (t.number === chosen ? 20 : 13)),
            symbol: mine.map((t) => (t.draw === "even" ? "diamond" : "circle") + (t.frontier ? "" : "-open")),
            opacity: mine.map((t) => (fulfils(t, wish) ? 1 : 0.3)), line: { width: 2, color: colour(shade) },
          },
        };
      });
      const span = { type: "line", xref: "paper", x0: 0, x1: 1, showlegend: true };
      const axis = { gridcolor: grid, zeroline: false, automargin: true, fixedrange: true, tickfont: { color: ink }, rangemode: "tozero" };
      Plotly.react(element("plot-" + chart.id), traces, {
        paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: ink, size: 13 }, dragmode: false,
        margin: { l: 8, r: 16, t: 12, b: 8 }, legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" },
        xaxis: { ...axis, title: { text: chart.title } }, yaxis: { ...axis, title: { text: "acc@1 of the worst case" } },
        shapes: lines.map((l, i) => ({ ...span, y0: l.value, y1: l.value, name: l.name, line: { color: muted, width: 1.5, dash: dashes[i] } })),
      }, { displayModeBar: false, responsive: true, showTips: false });
    }
  }

  function tell(trial, why) {
    element("answer").textContent = trial
      ? why + ": " + trial.name + ". Worst case " + trial.worst_text + " (" + trial.strongest_text + "), " + trial.mean_km.toFixed(2)
        + " km on average, flows " + trial.flows.toFixed(3) + "."
      : "No setting that was tried keeps all of this. Relax a wish.";
    element("command").textContent = trial ? trial.command : "";
  }

  function show(number, why) {
    chosen = number;
    const wish = wishes();
    for (const t of trials) {
      const row = element("trial-" + t.number);
      row.classList.toggle("chosen", t.number === chosen);
      row.classList.toggle("faded", !fulfils(t, wish));
    }
    tell(trials[number], why);
    draw(wish);
  }

  function answer() {
    const found = best(trials.filter((t) => fulfils(t, wishes())));
    show(found ? found.number : null, "Recommended");
  }

  element("wishes").addEventListener("input", answer);
  element("wishes").addEventListener("submit", (event) => event.preventDefault());
  darkMode.addEventListener("change", () => draw(wishes()));
  answer();
  for (const chart of charts) {
    element("plot-" + chart.id).on("plotly_click", (event) => show(event.points[0].customdata, "Chosen"));
  }
  for (const t of trials) {
    const row = element("trial-" + t.number);
    row.addEventListener("click", () => show(t.number, "Chosen"));
    row.addEventListener("keydown", (event) => { if (event.key === "Enter") show(t.number, "Chosen"); });
  }
})();
