// One chart: uPlot with our axes, a tip beside the cursor, zoom by mouse, button and key. All charts
// of a page show the same steps.
const FONT = "12px system-ui, sans-serif";
const charts = [];
let isSyncing = false;

class Chart {
  constructor(id, height) {
    this.place = byId(id);
    this.height = height;
    this.plot = null;
    this.tip = element("div", "", "tip");
    this.tip.hidden = true;
    this.place.addEventListener("keydown", (event) => this.onKey(event));
    this.place.addEventListener("blur", () => this.hideTip());
    charts.push(this);
  }

  // `series` are uPlot's without the first; `tell(index)` gives the rows of the tip.
  draw(steps, columns, series, options) {
    const kept = this.plot && options.keepZoom ? { ...this.plot.scales.x } : null;
    if (this.plot) this.plot.destroy();
    this.steps = steps;
    this.tell = options.tell;
    this.plot = new uPlot(
      {
        width: this.width(),
        height: this.height,
        padding: [14, 12, 0, 0],
        legend: { show: false },
        cursor: { y: false, drag: { x: true, y: false, setScale: true }, points: { show: false } },
        scales: { x: { time: false }, y: { range: options.range } },
        axes: [this.axis("step", count, 26), this.axis("", size, 74)],
        series: [{}, ...series],
        hooks: {
          drawClear: [(plot) => options.under && options.under(plot)],
          draw: [(plot) => options.over && options.over(plot)],
          setScale: [(plot, key) => key === "x" && this.share(plot)],
          setCursor: [(plot) => this.onCursor(plot)],
        },
      },
      [steps, ...columns],
      this.place,
    );
    this.plot.over.append(this.tip);
    this.plot.over.addEventListener("mouseleave", () => this.hideTip());
    if (kept && kept.min !== null) this.plot.setScale("x", { min: kept.min, max: kept.max });
  }

  width() {
    return Math.max(this.place.clientWidth, 280);
  }

  axis(label, words, room) {
    return {
      stroke: colour("soft"),
      font: FONT,
      size: room,
      space: label ? 84 : 34,
      grid: { stroke: colour("line"), width: 1 },
      ticks: { show: false },
      values: (plot, splits) => splits.map((split) => (split === null ? "" : words(split))),
      incrs: room > 50 ? SIZES : undefined,
      label: label ? "step" : undefined,
      labelSize: label ? 16 : 0,
      labelFont: FONT,
      labelGap: 0,
    };
  }

  share(plot) {
    if (isSyncing) return;
    isSyncing = true;
    const { min, max } = plot.scales.x;
    for (const other of charts) {
      if (other !== this && other.plot) other.plot.setScale("x", { min, max });
    }
    isSyncing = false;
  }

  zoom(factor) {
    const { min, max } = this.plot.scales.x;
    const at = this.plot.cursor.idx;
    const middle = at === null || at === undefined ? (min + max) / 2 : this.steps[at];
    const first = this.steps[0];
    const last = this.steps[this.steps.length - 1];
    const low = Math.max(middle - (middle - min) * factor, first);
    const high = Math.min(middle + (max - middle) * factor, last);
    if (high > low) this.plot.setScale("x", { min: low, max: high });
  }

  reset() {
    this.plot.setScale("x", { min: this.steps[0], max: this.steps[this.steps.length - 1] });
  }

  onKey(event) {
    const moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20 };
    if (event.key in moves) this.move(moves[event.key]);
    else if (event.key === "Home") this.moveTo(0);
    else if (event.key === "End") this.moveTo(this.steps.length - 1);
    else if (event.key === "+" || event.key === "=") this.zoom(0.5);
    else if (event.key === "-") this.zoom(2);
    else if (event.key === "0") this.reset();
    else if (event.key === "Escape") this.hideTip();
    else return;
    event.preventDefault();
  }

  move(by) {
    const at = this.plot.cursor.idx;
    this.moveTo((at === null || at === undefined ? 0 : at) + by);
  }

  moveTo(index) {
    const at = Math.min(Math.max(index, 0), this.steps.length - 1);
    const left = this.plot.valToPos(this.steps[at], "x");
    this.plot.setCursor({ left, top: this.plot.bbox.height / devicePixelRatio / 2 });
    const rows = this.tell(at).rows.map((row) => row.name + " " + row.value);
    byId("said").textContent = "Step " + count(this.steps[at]) + ": " + rows.join(", ");
  }

  onCursor(plot) {
    const { idx, left } = plot.cursor;
    if (idx === null || idx === undefined || left < 0 || !this.tell) return this.hideTip();
    const told = this.tell(idx);
    this.tip.replaceChildren(element("b", "Step " + count(this.steps[idx])));
    for (const row of told.rows) this.tip.append(tipRow(row));
    for (const event of told.events) this.tip.append(element("div", event, "event"));
    this.tip.hidden = false;
    const isRight = left > plot.over.clientWidth / 2;
    this.tip.style.left = isRight ? "auto" : left + 14 + "px";
    this.tip.style.right = isRight ? plot.over.clientWidth - left + 14 + "px" : "auto";
    this.tip.style.top = "8px";
  }

  hideTip() {
    this.tip.hidden = true;
  }

  fit() {
    if (this.plot) this.plot.setSize({ width: this.width(), height: this.height });
  }
}

// Sizes are round in powers of two.
const SIZES = [];
for (let power = 0; power < 50; power += 1) SIZES.push(2 ** power);

function tipRow(row) {
  const made = element("div");
  const name = element("span", "", "name");
  const swatch = element("i");
  swatch.style.setProperty("--swatch", row.colour);
  name.append(swatch, document.createTextNode(row.name));
  made.append(name, element("span", row.value));
  return made;
}

function legendEntry(entry) {
  const item = element("li");
  const button = element("button");
  button.type = "button";
  const swatch = element("i");
  swatch.style.setProperty("--swatch", entry.colour);
  button.append(swatch, document.createTextNode(entry.name), element("span", entry.value, "value"));
  button.setAttribute("aria-pressed", String(entry.isOn));
  button.addEventListener("click", entry.toggle);
  item.append(button);
  return item;
}

// Replacing a list of buttons must not lose the place of whoever is on one of them.
function fill(list, items) {
  const at = [...list.querySelectorAll("button")].indexOf(document.activeElement);
  list.replaceChildren(...items);
  const again = list.querySelectorAll("button")[at];
  if (again) again.focus();
}
