// Draws the plots as wide as their place is, shows the values under the pointer, and lets readers
// choose whose lines are shown. The tables and the bars are there without this.
(() => {
  "use strict";
  const { names, charts } = JSON.parse(document.getElementById("plot-data").textContent);
  const hidden = new Set();
  const drawings = [];

  for (const figure of document.querySelectorAll("figure[data-plot]")) {
    const chart = charts[figure.dataset.plot];
    const box = figure.querySelector(".drawn");
    const legend = figure.querySelector(".legend");
    const tip = document.createElement("output");
    const rule = document.createElement("i");
    tip.className = "tip";
    rule.className = "rule";
    let drawn = null;
    let width = 0;
    let place = -1;

    const show = (at) => {
      place = drawn && drawn.stops.length > 0 ? at : -1;
      tip.hidden = rule.hidden = place < 0;
      if (place < 0) return;
      const { value, across } = drawn.stops[place];
      tip.innerHTML = plot.describe(chart, names, value, hidden);
      rule.style.cssText = `left:${across}px;top:${drawn.inner.top}px;` +
        `height:${drawn.inner.bottom - drawn.inner.top}px`;
      // Below the plot, so that it hides none of it.
      const left = Math.min(across - tip.offsetWidth / 2, width - tip.offsetWidth);
      tip.style.cssText = `left:${Math.max(0, left)}px;top:${drawn.height - 26}px`;
    };
    const render = (anew) => {
      const found = Math.floor(box.clientWidth);
      if (found === 0 || (found === width && !anew)) return;
      width = found;
      drawn = plot.draw(chart, names, width, hidden);
      box.innerHTML = drawn.svg;
      legend.innerHTML = drawn.legend;
      box.append(rule, tip);
      show(-1);
    };
    box.addEventListener("pointermove", (event) => {
      if (!drawn) return;
      const x = event.clientX - box.getBoundingClientRect().left;
      const far = drawn.stops.map(({ across }) => Math.abs(across - x));
      show(far.indexOf(Math.min(...far)));
    });
    box.addEventListener("pointerleave", () => show(-1));
    box.addEventListener("blur", () => show(-1));
    box.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step || !drawn) return;
      show(Math.min(Math.max(place + step, 0), drawn.stops.length - 1));
      event.preventDefault();
    });
    // A plot in a closed part of the page has no width yet: it is drawn when that opens.
    new ResizeObserver(() => render(false)).observe(box);
    drawings.push(render);
  }

  const choice = document.getElementById("choice");
  const isDrawn = new Set(charts.flatMap((chart) => chart.lines.map((line) => line.of)));
  names.forEach((name, of) => {
    if (!choice || !isDrawn.has(of)) return;
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = true;
    box.addEventListener("change", () => {
      if (box.checked) hidden.delete(of);
      else hidden.add(of);
      for (const render of drawings) render(true);
    });
    label.innerHTML = plot.sample(of) + plot.escaped(name);
    label.prepend(box);
    choice.append(label);
    choice.hidden = false;
  });

  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
})();
