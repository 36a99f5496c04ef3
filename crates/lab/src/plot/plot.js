// Draws one plot as the text of an SVG element, in the width that there is. Nothing here touches
// the document, so that tests can run it alone; behaviour.js puts the result into the page.
const plot = (() => {
  "use strict";

  const PER_LETTER = 6.7; // pixels, at 12 pixels a letter
  const DASHES = ["", "9 4", "2 3", "10 3 2 3", "15 5"];
  const MARKS_MAX = 16; // points of a line; with more of them marks would hide it

  const escaped = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
  const short = (text) => (text.length > 24 ? text.slice(0, 23) + "…" : text);
  const widest = (texts) => texts.reduce((most, text) => Math.max(most, text.length), 0);
  const pixels = (value) => String(Math.round(value * 10) / 10);

  // Three significant digits, or all before the point, as in the tables.
  const digits = (value) => {
    const size = Math.abs(value);
    if (size > 0 && size < 0.01) return value.toExponential(1);
    const places = size === 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
    const style = { minimumFractionDigits: places, maximumFractionDigits: places };
    return value.toLocaleString("en-US", style);
  };
  const stepped = (value, base, names) => {
    let at = 0;
    while (at + 1 < names.length && Math.abs(value) >= base * 0.9995) {
      value /= base;
      at += 1;
    }
    return digits(value) + names[at];
  };
  const UNITS = {
    us: (value) => stepped(value, 1000, [" µs", " ms", " s"]),
    s: (value) => `${digits(value)} s`,
    rate: (value) => `${digits(value)}/s`,
    bytes: (value) => stepped(value, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]),
    count: digits,
    share: (value) => `${digits(value * 100)} %`,
    cpus: (value) => `${digits(value)} CPU`,
  };
  const shown = (unit, value) => UNITS[unit](value);
  // A tick has no zeros behind its point.
  const ticked = (unit, value) =>
    value === 0
      ? "0"
      : shown(unit, value).replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");

  // 1, 2 or 5 times a power of ten: the next one upwards, and the next one downwards.
  const roundUp = (value) => {
    const power = 10 ** Math.floor(Math.log10(value));
    return power * ([1, 2, 5].find((head) => value / power <= head + 1e-9) ?? 10);
  };
  const roundDown = (value) => {
    const power = 10 ** Math.floor(Math.log10(value));
    return power * ([5, 2, 1].find((head) => value / power >= head - 1e-9) ?? 1);
  };

  // Each scale has: place (0 to 1), ticks (at most so many) and label.
  const named = (names) => ({
    place: (value) => (value + 0.5) / Math.max(names.length, 1),
    ticks: () => names.map((_, at) => at),
    label: (value) => names[value] ?? "",
  });
  const linear = (axis, most) => {
    const power = axis.unit === "bytes" ? Math.floor(Math.log(most) / Math.log(1024)) : 0;
    const base = 1024 ** Math.max(power, 0);
    const step = base * roundUp(most / base / 6);
    const high = step * Math.ceil(most / step - 1e-9);
    return {
      place: (value) => Math.min(Math.max(value / high, 0), 1),
      ticks: () => Array.from({ length: Math.round(high / step) + 1 }, (_, at) => at * step),
      label: (value) => ticked(axis.unit, value),
    };
  };
  const logarithmic = (axis, least, most) => {
    const isBinary = axis.unit === "bytes";
    let low = isBinary ? 2 ** Math.floor(Math.log2(least)) : roundDown(least);
    let high = isBinary ? 2 ** Math.ceil(Math.log2(most)) : roundUp(most);
    if (low >= high) [low, high] = [low / 2, high * 2];
    const within = (heads, base, stride) => {
      const found = [];
      const first = Math.floor(Math.log(low) / Math.log(base) + 1e-9);
      for (let power = first; base ** power <= high * 1.000001; power += 1) {
        if (power % stride !== 0) continue;
        for (const head of heads) {
          const value = head * base ** power;
          if (value >= low * 0.999999 && value <= high * 1.000001) found.push(value);
        }
      }
      return found;
    };
    const ticks = (most) => {
      const finer = isBinary ? [] : [within([1, 2, 5], 10, 1), within([1, 3], 10, 1)];
      for (const found of finer) if (found.length >= 2 && found.length <= most) return found;
      for (let stride = 1; stride < 64; stride += 1) {
        const found = within([1], isBinary ? 2 : 10, stride);
        if (found.length < 2) break;
        if (found.length <= most) return found;
      }
      return [low, high];
    };
    return {
      place: (value) =>
        value > 0 ? Math.min(Math.max(Math.log(value / low) / Math.log(high / low), 0), 1) : 0,
      ticks,
      label: (value) => ticked(axis.unit, value),
      isLog: true,
    };
  };
  // An axis that fits is logarithmic where values are more than twenty times apart.
  const scaleOf = (axis, values) => {
    if (axis.scale === "named") return named(axis.names);
    if (axis.scale === "share") return linear(axis, 1);
    const usable = values.filter((value) => Number.isFinite(value) && value > 0);
    const least = usable.reduce((a, b) => Math.min(a, b), Infinity);
    const most = usable.reduce((a, b) => Math.max(a, b), 0);
    if (most === 0) return linear(axis, 1);
    const isLog = axis.scale === "log" || (axis.scale === "fit" && most / least > 20);
    return isLog ? logarithmic(axis, least, most) : linear(axis, most);
  };

  // The sample of a line: in the legend, in the choice and under the pointer.
  const sample = (of) =>
    `<svg class="sample i${of % 7}" width="28" height="10" viewBox="0 0 28 10" ` +
    `aria-hidden="true"><path class="l" d="M0 5H28" stroke-dasharray="${DASHES[of % 5]}"/>` +
    `<circle class="f" cx="14" cy="5" r="3.5"/></svg>`;

  const text = (x, y, anchor, content, kind = "") =>
    `<text x="${pixels(x)}" y="${pixels(y)}" text-anchor="${anchor}"` +
    `${kind && ` class="${kind}"`}>${escaped(content)}</text>`;

  const rule = (from, to) => `<path class="g" d="M${from.map(pixels).join(" ")}${to}"/>`;
  const grid = (inner, chart, x, y, width) => {
    const parts = [text(2, 14, "start", chart.y.title + (y.isLog ? " (logarithmic)" : ""), "c")];
    for (const tick of y.ticks(7)) {
      const down = inner.y(y.place(tick));
      parts.push(rule([inner.left, down], `H${pixels(inner.right)}`));
      parts.push(text(inner.left - 6, down + 4, "end", y.label(tick)));
    }
    let free = 0;
    for (const tick of x.ticks(9)) {
      const across = inner.x(x.place(tick));
      parts.push(rule([across, inner.top], `V${pixels(inner.bottom)}`));
      const half = (x.label(tick).length * PER_LETTER) / 2;
      if (across - half < free || across + half > width) continue; // labels would touch
      parts.push(text(across, inner.bottom + 17, "middle", x.label(tick)));
      free = across + half + 5;
    }
    const title = chart.x.title + (x.isLog ? " (logarithmic)" : "");
    parts.push(text((inner.left + inner.right) / 2, inner.bottom + 36, "middle", title, "c"));
    return parts;
  };

  const path = (points, isStep) =>
    points
      .map(([x, y], at) => {
        if (at === 0) return `M${pixels(x)} ${pixels(y)}`;
        return isStep ? `H${pixels(x)}V${pixels(y)}` : `L${pixels(x)} ${pixels(y)}`;
      })
      .join("");

  // One line with its band and marks. It has a gap where it has no value.
  const series = (line, isStep, at) => {
    const parts = [];
    const band = line.points.filter(([, y, low]) => y != null && low != null);
    if (band.length > 1) {
      const lower = band.map(([x, , low]) => at(x, low));
      const upper = band.map(([x, , , high]) => at(x, high)).reverse();
      parts.push(`<path class="a" d="${path(lower.concat(upper), false)}Z"/>`);
    }
    let piece = [];
    const stroke = () => {
      if (piece.length > 1) {
        const dashes = DASHES[line.of % 5];
        parts.push(`<path class="l" stroke-dasharray="${dashes}" d="${path(piece, isStep)}"/>`);
      }
      piece = [];
    };
    for (const [x, y] of line.points) {
      if (y == null) stroke();
      else piece.push(at(x, y));
    }
    stroke();
    const isMarked = line.points.length <= MARKS_MAX;
    for (const [x, y] of line.points) {
      if (y == null || !isMarked) continue;
      const [across, down] = at(x, y);
      parts.push(`<circle class="f" cx="${pixels(across)}" cy="${pixels(down)}" r="3.5"/>`);
    }
    return `<g class="i${line.of % 7}">${parts.join("")}</g>`;
  };

  // Names at the ends of their lines, moved apart where they would touch.
  const labels = (lines, names, at, inner) => {
    const all = lines.map((line) => {
      const last = [...line.points].reverse().find(([, y]) => y != null);
      const [x, end] = last ? at(last[0], last[1]) : [0, inner.bottom];
      return { of: line.of, isNear: x > inner.right - 40, end, y: end };
    });
    all.sort((a, b) => a.end - b.end);
    let least = inner.top;
    for (const one of all) least = (one.y = Math.max(one.y, least)) + 15;
    let most = inner.bottom;
    for (const one of all.reverse()) most = (one.y = Math.min(one.y, most)) - 15;
    const right = inner.right;
    return all.map(({ of, isNear, end, y }) => {
      // Only to a line that ends here.
      const from = isNear ? `M${pixels(right + 2)} ${pixels(end)}L` : "M";
      return (
        `<g class="i${of % 7}"><path class="l ${isNear ? "thin" : "stub"}" stroke-dasharray="` +
        `${isNear ? "" : DASHES[of % 5]}" d="${from}${pixels(right + 8)} ${pixels(y)}` +
        `H${pixels(right + 19)}"/>${text(right + 22, y + 4, "start", short(names[of]))}</g>`
      );
    });
  };

  /**
   * Lays a plot out in `width` pixels without the lines of the contenders in `hidden`. Returns its
   * SVG, its legend if the lines have no names of their own, and the places where values stand.
   */
  const draw = (chart, names, width, hidden = new Set()) => {
    const lines = chart.lines.filter((line) => !hidden.has(line.of));
    const points = lines.flatMap((line) => line.points);
    const x = scaleOf(chart.x, points.map((point) => point[0]));
    const y = scaleOf(chart.y, points.flatMap((point) => [point[1], point[2], point[3]]));
    const isBeside = width >= 600;
    const texts = lines.map((line) => short(names[line.of]));
    const beside = isBeside && lines.length > 0 ? 30 + widest(texts) * PER_LETTER : 24;
    const low = Math.min(Math.max(Math.round(width * 0.45), 240), 380);
    const height = Math.max(low, isBeside ? lines.length * 15 + 80 : 0);
    const inner = {
      left: 14 + widest(y.ticks(7).map(y.label)) * PER_LETTER,
      right: width - beside,
      top: 28,
      bottom: height - 46,
    };
    inner.x = (place) => inner.left + place * (inner.right - inner.left);
    inner.y = (place) => inner.bottom - place * (inner.bottom - inner.top);
    const at = (a, b) => [inner.x(x.place(a)), inner.y(y.place(b))];
    const parts = grid(inner, chart, x, y, width);
    for (const line of lines) parts.push(series(line, chart.step, at));
    if (isBeside) parts.push(...labels(lines, names, at, inner));
    const stops = [...new Set(points.map((point) => point[0]))].sort((a, b) => a - b);
    return {
      svg:
        `<svg xmlns="http://www.w3.org/2000/svg" class="plot" width="${width}" ` +
        `height="${height}" viewBox="0 0 ${width} ${height}" aria-hidden="true">` +
        `${parts.join("")}</svg>`,
      legend: isBeside
        ? ""
        : lines.map(({ of }) => `<span>${sample(of)}${escaped(names[of])}</span>`).join(" "),
      stops: stops.map((value) => ({ value, across: inner.x(x.place(value)) })),
      inner,
      height,
    };
  };

  // The point of a line at a value. Seconds of several lines need not be at the same moments.
  const pointAt = (chart, points, value) => {
    if (chart.step) return points.filter(([x]) => x <= value).at(-1);
    if (chart.x.scale !== "zero") return points.find(([x]) => x === value);
    const far = points.map(([x]) => Math.abs(x - value));
    const nearest = far.indexOf(Math.min(...far));
    const span = points.length > 1 ? points.at(-1)[0] - points[0][0] : 0;
    return far[nearest] <= (0.6 * span) / Math.max(points.length - 1, 1) ? points[nearest] : null;
  };

  /** Describes every line at `value` of the horizontal axis as HTML, the greatest first. */
  const describe = (chart, names, value, hidden = new Set()) => {
    const rows = [];
    for (const line of chart.lines) {
      if (hidden.has(line.of)) continue;
      const found = pointAt(chart, line.points, value);
      if (!found) continue;
      const [, y, low, high] = found;
      const unit = chart.y.unit;
      let said = y == null ? "not compared" : shown(unit, y);
      if (low != null) said += ` (${shown(unit, low)} – ${shown(unit, high)})`;
      rows.push({ of: line.of, y: y ?? -1, said });
    }
    rows.sort((a, b) => b.y - a.y);
    const { scale, names: categories, unit, suffix } = chart.x;
    const heading = (scale === "named" ? categories[value] : shown(unit, value)) + suffix;
    const list = rows.map(
      ({ of, said }) =>
        `<span>${sample(of)}${escaped(short(names[of]))}</span><span>${escaped(said)}</span>`,
    );
    return `<b>${escaped(heading)}</b>${list.join("")}`;
  };

  return { draw, describe, sample, escaped };
})();
