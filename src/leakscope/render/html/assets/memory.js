// The charts of one process: memory in layers, and its counters as lines; and two runs on one axis.
const ROLES = {
  constant: "constant", rest: "rest", python: "python", live: "live", parameters: "parameters",
  gradients: "gradients", "optimizer state": "optimizer", freed: "freed",
};
const LINES = [
  { metric: "process.rss_bytes", name: "resident (RSS)", colour: "rest" },
  { metric: "process.uss_bytes", name: "private (USS)", colour: "private" },
  { metric: "heap.taken", name: "live and held by the allocator", colour: "freed" },
  { metric: "heap.in_use_bytes", name: "live: C heap, in use", colour: "live" },
];
const SPANS = {
  checkpoint: { name: "checkpoint", colour: "accent", dash: [] },
  collection: { name: "full collection", colour: "steady", dash: [2, 4] },
  look: { name: "look of leakscope", colour: "kept-4", dash: [6, 4] },
};
const PHASES = { train: "live", evaluate: "growing", predict: "steady", load: "python" };
const NEAR = 6;
const PRIVATE = "process.uss_bytes";

function opened(panel) {
  const steps = decoded(panel.steps, panel.perStep);
  let kept = 0;
  const layers = panel.layers.map((layer) => ({
    ...layer,
    values: decoded(layer.values, 1),
    colour: layer.role === "kept" ? "kept-" + ((kept++ % 4) + 1) : ROLES[layer.role] || "rest",
  }));
  const curves = {};
  for (const curve of panel.curves) curves[curve.metric] = decoded(curve.values, 1);
  const live = curves["heap.in_use_bytes"];
  const held = curves["heap.held_bytes"];
  if (live && held) {
    curves["heap.taken"] = live.map((value, at) =>
      value === null || held[at] === null ? null : value + held[at],
    );
  }
  return { ...panel, steps, layers, curves };
}

class Memory {
  constructor(run) {
    this.run = run;
    this.roles = new Chart("roles", 360);
    this.lines = new Chart("lines", 240);
    this.hidden = new Set();
    this.hiddenSpans = new Set();
    this.onlyChanges = true;
    this.show(0);
  }

  show(index) {
    this.panel = opened(this.run.panels[index]);
    this.spans = this.run.spans.filter((span) => span.process === this.panel.process);
    const whole = this.panel.layers.reduce((sum, layer) => sum + Math.max(...layer.values), 0);
    const constant = this.panel.layers.find((layer) => layer.role === "constant");
    this.canHide = Boolean(constant) && this.panel.layers.length > 1 && whole > 0;
    byId("roles").hidden = !this.panel.layers.length;
    // Pages become private when another process that shared them ends: shown where it was judged.
    const { judged } = this.panel;
    if (judged && judged.metric === PRIVATE) this.hidden.delete(PRIVATE);
    else this.hidden.add(PRIVATE);
    this.draw(false);
  }

  draw(keepZoom) {
    if (this.panel.layers.length) this.drawRoles(keepZoom);
    this.drawLines(keepZoom);
    this.drawSpans();
  }

  isDrawn(layer) {
    return !this.hidden.has(layer.name) && !(this.onlyChanges && layer.role === "constant" && this.canHide);
  }

  drawRoles(keepZoom) {
    const { steps, layers } = this.panel;
    const shown = layers.filter((layer) => this.isDrawn(layer));
    const sums = [];
    let below = steps.map(() => 0);
    for (const layer of shown) {
      below = below.map((value, at) => (layer.values[at] === null ? null : value + layer.values[at]));
      sums.push(below);
    }
    // The highest sum first: each lower one is painted over it.
    const columns = sums.slice().reverse();
    const series = shown.slice().reverse().map((layer) => ({
      stroke: colour(layer.colour),
      width: layer.role === "kept" ? 1.5 : 0.5,
      fill: (plot) => this.fillOf(plot, layer),
      points: { show: false },
      paths: uPlot.paths.linear(),
    }));
    this.roles.draw(steps, columns, series, {
      keepZoom,
      range: (plot, low, high) => [0, (high || 1) * 1.06],
      tell: (at) => ({ rows: this.rowsAt(shown, at), events: this.eventsAt(at) }),
      over: (plot) => this.drawOver(plot, true),
    });
    this.legendRoles();
  }

  rowsAt(shown, at) {
    if (this.panel.layers[0].values[at] === null) return [];
    const rows = shown.slice().reverse().map((layer) => ({
      name: layer.name + (isGuessed(layer, this.panel.steps[at]) ? " (drawn on)" : ""),
      value: size(layer.values[at]),
      colour: colour(layer.colour),
    }));
    const total = this.panel.layers.reduce((sum, layer) => sum + layer.values[at], 0);
    rows.unshift({ name: "all of it", value: size(total), colour: "transparent" });
    return rows.filter((row, place) => place === 0 || !row.value.startsWith("0 "));
  }

  eventsAt(at) {
    const plot = this.roles.plot || this.lines.plot;
    const here = plot.valToPos(this.panel.steps[at], "x");
    return this.spans
      .filter((span) =>
        span.what in SPANS
          ? !this.hiddenSpans.has(span.what) && Math.abs(plot.valToPos(span.from, "x") - here) <= NEAR
          : span.from <= this.panel.steps[at] && this.panel.steps[at] <= span.to,
      )
      .slice(0, 6)
      .map((span) => {
        const name = span.what in SPANS ? SPANS[span.what].name : span.what;
        return name + (span.says ? ": " + span.says : "");
      });
  }

  // What a look counted is drawn full; what was drawn on at its rate is pale.
  fillOf(plot, layer) {
    const full = faded(layer.colour, 0.92);
    if (layer.seenFrom === null || layer.seenTo === null) return full;
    const { left, width } = plot.bbox;
    const pale = faded(layer.colour, 0.55);
    const gradient = plot.ctx.createLinearGradient(left, 0, left + width, 0);
    const place = (step) =>
      Math.min(Math.max((plot.valToPos(step, "x", true) - left) / width, 0), 1) || 0;
    const [from, to] = [place(layer.seenFrom), place(layer.seenTo)];
    for (const [stop, tone] of [[0, pale], [from, pale], [from, full], [to, full], [to, pale], [1, pale]]) {
      gradient.addColorStop(stop, tone);
    }
    return gradient;
  }

  legendRoles() {
    const last = this.panel.steps.length - 1;
    const entries = this.panel.layers.slice().reverse().map((layer) =>
      legendEntry({
        name: layer.name,
        value: size(nearest(layer.values, last)) + (isGuessed(layer, this.panel.steps[last]) ? ", drawn on" : ""),
        colour: colour(layer.colour),
        isOn: this.isDrawn(layer),
        toggle: () => this.toggle(layer),
      }),
    );
    fill(byId("roles-legend"), entries);
    const button = document.querySelector('[data-do="changes"]');
    button.hidden = !this.canHide;
    button.setAttribute("aria-pressed", String(this.onlyChanges));
  }

  toggle(layer) {
    if (layer.role === "constant" && this.onlyChanges) this.onlyChanges = false;
    else if (!this.hidden.delete(layer.name)) this.hidden.add(layer.name);
    this.draw(true);
  }

  drawLines(keepZoom) {
    const { steps, curves, judged } = this.panel;
    const shown = LINES.filter((line) => curves[line.metric]);
    const drawn = shown.filter((line) => !this.hidden.has(line.metric));
    // Side by side only the change can be compared: resident memory is far above live memory.
    const columns = drawn.map((line) => {
      const from = this.onlyChanges ? first(curves[line.metric]) : 0;
      return curves[line.metric].map((value) => (value === null ? null : value - from));
    });
    byId("lines-head").textContent =
      "Live, held and resident" + (this.onlyChanges ? ": change since the first step" : "");
    const series = drawn.map((line) => ({
      stroke: colour(line.colour), width: 2, spanGaps: true, points: { show: false },
    }));
    this.lines.draw(steps, columns, series, {
      keepZoom,
      tell: (at) => ({
        rows: drawn.map((line) => ({
          name: line.name, value: this.told(curves[line.metric], at), colour: colour(line.colour),
        })),
        events: this.eventsAt(at),
      }),
      range: (plot, low, high) => {
        const room = Math.max((high - low) * 0.08, 1024);
        return low === null ? [0, 1] : [low - room, high + room];
      },
      over: (plot) => {
        this.drawOver(plot, false);
        const at = drawn.findIndex((line) => judged && line.metric === judged.metric);
        if (at >= 0) drawTrend(plot, judged, steps, columns[at]);
      },
    });
    const entries = shown.map((line) =>
      legendEntry({
        name: line.name,
        value: this.told(curves[line.metric], steps.length - 1),
        colour: colour(line.colour),
        isOn: !this.hidden.has(line.metric),
        toggle: () => {
          if (!this.hidden.delete(line.metric)) this.hidden.add(line.metric);
          this.draw(true);
        },
      }),
    );
    fill(byId("lines-legend"), entries);
  }

  told(column, at) {
    const value = nearest(column, at);
    if (value === null) return "";
    const grown = value - first(column);
    return size(value) + (this.onlyChanges ? " (" + (grown >= 0 ? "+" : "") + size(grown) + ")" : "");
  }

  drawSpans() {
    const phases = Object.entries(PHASES).map(([what, name]) => [what, { name: what, colour: name }]);
    const entries = [...Object.entries(SPANS), ...phases].flatMap(([what, kind]) => {
      const number = this.spans.filter((span) => span.what === what).length;
      if (!number) return [];
      const toggle = () => {
        if (!this.hiddenSpans.delete(what)) this.hiddenSpans.add(what);
        this.draw(true);
      };
      const isOn = !this.hiddenSpans.has(what);
      return [legendEntry({ name: kind.name, value: String(number), colour: colour(kind.colour), isOn, toggle })];
    });
    fill(byId("spans-legend"), entries);
  }

  // The judged steps, the phases and what happened, over the layers and inside the axes.
  drawOver(plot, hasWords) {
    const { ctx } = plot;
    const { left, top, width, height } = plot.bbox;
    const ratio = devicePixelRatio;
    const at = (step) => Math.round(plot.valToPos(step, "x", true)) + 0.5;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top - 14 * ratio, width, height + 14 * ratio);
    ctx.clip();
    const judged = this.panel.judged;
    if (judged && judged.to > judged.from) {
      const [from, to] = [Math.max(at(judged.from), left), Math.min(at(judged.to), left + width)];
      ctx.fillStyle = colour(judged.outcome);
      ctx.globalAlpha = 0.07;
      ctx.fillRect(from, top, to - from, height);
      ctx.globalAlpha = 1;
      ctx.fillRect(from, top - 3 * ratio, to - from, 3 * ratio);
      if (hasWords && to - from > 60 * ratio) {
        ctx.font = "600 " + 12 * ratio + "px system-ui, sans-serif";
        ctx.textBaseline = "top";
        ctx.textAlign = "left";
        ctx.fillText(judged.says, from + 8 * ratio, top + 6 * ratio);
      }
    }
    for (const span of this.spans) {
      const kind = SPANS[span.what];
      if (this.hiddenSpans.has(span.what)) continue;
      if (!kind) drawPhase(plot, span, at);
      else {
        ctx.strokeStyle = colour(kind.colour);
        ctx.globalAlpha = 0.75;
        ctx.lineWidth = ratio;
        ctx.setLineDash(kind.dash.map((length) => length * ratio));
        ctx.beginPath();
        ctx.moveTo(at(span.from), top);
        ctx.lineTo(at(span.from), top + height);
        ctx.stroke();
      }
    }
    ctx.restore();
  }
}

function drawPhase(plot, span, at) {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  ctx.globalAlpha = 0.9;
  ctx.fillStyle = colour(PHASES[span.what] || "rest");
  const from = at(span.from);
  ctx.fillRect(from, bbox.top + bbox.height - 4 * ratio, Math.max(at(span.to) - from, 2 * ratio), 4 * ratio);
}

function isGuessed(layer, step) {
  return layer.seenFrom !== null && (step < layer.seenFrom || step > layer.seenTo);
}

// The last value read up to a place; before any was read there is none.
function nearest(column, at) {
  for (let back = at; back >= 0; back -= 1) if (column[back] !== null && column[back] !== undefined) return column[back];
  return null;
}

function first(column) {
  return column.find((value) => value !== null) || 0;
}

// The judged rate, laid through the middle of what was judged.
function drawTrend(plot, judged, steps, column) {
  if (!column || judged.to <= judged.from || !judged.rate) return;
  const offsets = [];
  steps.forEach((step, at) => {
    if (step >= judged.from && step <= judged.to && column[at] !== null) {
      offsets.push(column[at] - judged.rate * (step - judged.from));
    }
  });
  if (!offsets.length) return;
  const level = offsets.sort((a, b) => a - b)[offsets.length >> 1];
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.strokeStyle = colour(judged.outcome);
  ctx.lineWidth = 2 * devicePixelRatio;
  ctx.setLineDash([8 * devicePixelRatio, 5 * devicePixelRatio]);
  ctx.beginPath();
  for (const step of [judged.from, judged.to]) {
    const height = level + judged.rate * (step - judged.from);
    ctx.lineTo(plot.valToPos(step, "x", true), plot.valToPos(height, "y", true));
  }
  ctx.stroke();
  ctx.restore();
}

class Comparison {
  constructor(runs) {
    this.runs = runs.map((run) => opened(run.panels[0]));
    this.chart = new Chart("both", 280);
    this.isLevelled = true;
    this.hidden = new Set();
    const counters = LINES.filter((line) => this.runs.every((run) => run.curves[line.metric]));
    this.counters = counters;
    this.metric = (counters.find((line) => line.metric === "heap.in_use_bytes") || counters[0] || {}).metric;
    for (const line of counters) {
      const option = element("option", line.name);
      option.value = line.metric;
      option.selected = line.metric === this.metric;
      byId("counter").append(option);
    }
    byId("counter").addEventListener("change", (event) => {
      this.metric = event.target.value;
      this.draw(true);
    });
    byId("level").addEventListener("click", () => {
      this.isLevelled = !this.isLevelled;
      byId("level").setAttribute("aria-pressed", String(this.isLevelled));
      this.draw(true);
    });
    if (this.metric) this.draw(false);
  }

  draw(keepZoom) {
    const tables = this.runs.map((run) => {
      const rows = run.steps.map((step, at) => [step, run.curves[this.metric][at]]);
      const read = rows.filter((row) => row[1] !== null);
      const base = this.isLevelled && read.length ? read[0][1] : 0;
      return [read.map((row) => row[0]), read.map((row) => row[1] - base)];
    });
    const [steps, ...columns] = uPlot.join(tables);
    const names = ["A", "B"];
    const colours = ["run-a", "run-b"];
    const shown = [0, 1].filter((place) => !this.hidden.has(place));
    const series = shown.map((place) => ({
      stroke: colour(colours[place]), width: 2.2, spanGaps: true, points: { show: false },
      dash: place ? [8, 4] : [],
    }));
    const told = (place, at) => {
      const value = nearest(columns[place], at);
      return value === null ? "" : (this.isLevelled && value >= 0 ? "+" : "") + size(value);
    };
    this.chart.draw(steps, shown.map((place) => columns[place]), series, {
      keepZoom,
      range: (plot, low, high) => (low === null ? [0, 1] : [Math.min(low, this.isLevelled ? 0 : low), high + Math.max((high - low) * 0.08, 1024)]),
      tell: (at) => ({
        rows: shown.map((place) => ({ name: names[place], value: told(place, at), colour: colour(colours[place]) })),
        events: [],
      }),
    });
    fill(byId("both-legend"), [0, 1].map((place) =>
      legendEntry({
        name: names[place],
        value: told(place, steps.length - 1),
        colour: colour(colours[place]),
        isOn: !this.hidden.has(place),
        toggle: () => {
          if (!this.hidden.delete(place)) this.hidden.add(place);
          this.draw(true);
        },
      }),
    ));
  }
}
