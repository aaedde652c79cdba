// The tree of what is kept, drawn from the top down: a box is as wide as what it keeps is heavy.
const ROW = 30;
const THINNEST = 0.5;

class Icicle {
  constructor(tree) {
    this.canvas = byId("icicle");
    this.says = byId("icicle-says");
    this.nodes = tree.map((branch, place) => ({ ...branch, place, children: [], depth: 0 }));
    for (const node of this.nodes) {
      const above = this.nodes[node.parent];
      if (above) {
        above.children.push(node);
        node.depth = above.depth + 1;
      }
    }
    for (const node of this.nodes) node.children.sort((a, b) => b.bytes - a.bytes);
    this.top = this.nodes[0];
    this.at = this.top;
    this.matches = new Set();
    this.words = "";
    this.canvas.addEventListener("mousemove", (event) => this.onMove(event));
    this.canvas.addEventListener("click", (event) => this.onClick(event));
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
    byId("search").addEventListener("input", (event) => this.search(event.target.value));
    this.draw();
  }

  layOut() {
    this.boxes = [];
    const width = this.canvas.clientWidth;
    const lay = (node, left, room, row) => {
      if (room < THINNEST) return;
      this.boxes.push({ node, left, width: room, top: row * ROW });
      let next = left;
      for (const child of node.children) {
        const share = node.bytes ? (child.bytes / node.bytes) * room : 0;
        lay(child, next, share, row + 1);
        next += share;
      }
    };
    const above = [];
    for (let node = this.nodes[this.top.parent]; node; node = this.nodes[node.parent]) above.unshift(node);
    above.forEach((node, row) => this.boxes.push({ node, left: 0, width, top: row * ROW, isAbove: true }));
    lay(this.top, 0, width, above.length);
    return Math.max(...this.boxes.map((box) => box.top)) + ROW;
  }

  draw() {
    const height = this.layOut();
    const ratio = devicePixelRatio;
    this.canvas.style.height = height + "px";
    this.canvas.width = Math.round(this.canvas.clientWidth * ratio);
    this.canvas.height = Math.round(height * ratio);
    const ctx = this.canvas.getContext("2d");
    ctx.scale(ratio, ratio);
    ctx.textBaseline = "middle";
    for (const box of this.boxes) this.drawBox(ctx, box);
  }

  drawBox(ctx, { node, left, top, width, isAbove }) {
    const isDimmed = this.words && !this.matches.has(node);
    const name = node.finding ? "kept-1" : node.depth < 2 ? "constant" : this.isBelowFinding(node) ? "kept-2" : "rest";
    ctx.globalAlpha = isDimmed ? 0.25 : isAbove ? 0.6 : 1;
    ctx.fillStyle = faded(name, node.finding ? 0.9 : 0.55);
    ctx.fillRect(left + 0.5, top + 0.5, Math.max(width - 1, 0.5), ROW - 2);
    if (node === this.at && document.activeElement === this.canvas) {
      ctx.strokeStyle = colour("accent");
      ctx.lineWidth = 3;
      ctx.strokeRect(left + 2, top + 2, Math.max(width - 4, 1), ROW - 5);
    }
    if (width > 40) {
      ctx.save();
      ctx.beginPath();
      ctx.rect(left, top, width - 6, ROW);
      ctx.clip();
      ctx.fillStyle = node.finding ? "#fff" : colour("ink");
      ctx.font = "600 13px ui-monospace, monospace";
      ctx.fillText(node.name, left + 8, top + ROW / 2);
      const used = ctx.measureText(node.name).width;
      ctx.font = "12px system-ui, sans-serif";
      ctx.fillText("  " + node.what + "  " + size(node.bytes), left + 8 + used, top + ROW / 2);
      ctx.restore();
    }
    ctx.globalAlpha = 1;
  }

  isBelowFinding(node) {
    for (let one = node; one; one = this.nodes[one.parent]) if (one.finding) return true;
    return false;
  }

  boxAt(event) {
    const { left, top } = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    return this.boxes.find((box) => x >= box.left && x < box.left + box.width && y >= box.top && y < box.top + ROW);
  }

  tell(node) {
    const share = this.nodes[0].bytes ? Math.round((100 * node.bytes) / this.nodes[0].bytes) : 0;
    const words = [node.name, node.what, "keeps " + size(node.bytes), share + " % of what is drawn"];
    this.says.textContent = words.filter(Boolean).join(" · ");
  }

  onMove(event) {
    const box = this.boxAt(event);
    this.canvas.style.cursor = box ? "pointer" : "default";
    if (box) this.tell(box.node);
  }

  onClick(event) {
    const box = this.boxAt(event);
    if (box) this.goTo(box.node === this.top && this.nodes[this.top.parent] ? this.nodes[this.top.parent] : box.node);
  }

  goTo(node) {
    this.top = node;
    this.at = node;
    this.tell(node);
    this.draw();
  }

  onKey(event) {
    const above = this.nodes[this.at.parent];
    const beside = above ? above.children : [this.at];
    const place = beside.indexOf(this.at);
    const moves = {
      ArrowDown: this.at.children[0],
      ArrowUp: above,
      ArrowLeft: beside[place - 1],
      ArrowRight: beside[place + 1],
    };
    if (event.key === "Enter") this.goTo(this.at);
    else if (event.key === "Escape") this.goTo(this.nodes[0]);
    else if (event.key in moves) {
      this.at = moves[event.key] || this.at;
      this.tell(this.at);
      this.draw();
    } else return;
    event.preventDefault();
  }

  search(words) {
    this.words = words.trim().toLowerCase();
    this.matches = new Set();
    for (const node of this.nodes) {
      if (this.words && (node.name + " " + node.what).toLowerCase().includes(this.words)) this.matches.add(node);
    }
    // What lies below another match is counted with it.
    const outer = [...this.matches].filter((node) => !this.hasMatchAbove(node));
    const bytes = outer.reduce((sum, node) => sum + node.bytes, 0);
    byId("found").textContent = this.words
      ? this.matches.size + (this.matches.size === 1 ? " match, " : " matches, ") + size(bytes)
      : "";
    this.draw();
  }

  hasMatchAbove(node) {
    for (let one = this.nodes[node.parent]; one; one = this.nodes[one.parent]) {
      if (this.matches.has(one)) return true;
    }
    return false;
  }
}
