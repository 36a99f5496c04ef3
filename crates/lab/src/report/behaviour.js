// The page says everything without this. It adds: choosing whose lines are shown, and the value
// under the pointer in words below a plot.
(() => {
  "use strict";
  const choice = document.getElementById("choice");
  for (const name of choice ? choice.querySelectorAll("span[data-owner]") : []) {
    const owner = name.dataset.owner;
    const shapes = document.querySelectorAll(".o" + owner);
    if (shapes.length === 0) {
      name.remove();
      continue;
    }
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = true;
    box.addEventListener("change", () => {
      for (const shape of shapes) shape.classList.toggle("away", !box.checked);
    });
    const sample = document.createElement("span");
    sample.className = "sample " + name.className;
    label.append(box, sample, name.textContent);
    name.replaceWith(label);
    choice.hidden = false;
  }

  for (const figure of document.querySelectorAll("figure")) {
    const said = document.createElement("output");
    said.className = "said";
    said.textContent = "\u00a0";
    figure.querySelector("figcaption").prepend(said);
    const tips = [...figure.querySelectorAll("[class*=' o'] > title")].map((title) => title);
    figure.addEventListener("pointermove", (event) => {
      let best = null;
      let least = 30;
      for (const tip of tips) {
        const box = tip.parentNode.getBoundingClientRect();
        if (box.width === 0 && box.height === 0) continue;
        const across = Math.max(box.left - event.clientX, 0, event.clientX - box.right);
        const down = Math.max(box.top - event.clientY, 0, event.clientY - box.bottom);
        const size = tip.parentNode.tagName === "polyline" ? 25 : 0;
        const far = Math.hypot(across, down) + size;
        if (far < least) {
          least = far;
          best = tip;
        }
      }
      said.textContent = best ? best.textContent : "\u00a0";
    });
  }

  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
})();
