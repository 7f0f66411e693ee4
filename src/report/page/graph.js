// The graph on its canvas: drawing, moving, choosing.

const LEAST_SCALE = 0.01, MOST_SCALE = 4;

class GraphView {
  constructor(model, onSelect) {
    this.model = model;
    this.onSelect = onSelect;
    this.canvas = byId("canvas");
    this.context = this.canvas.getContext("2d");
    this.grouping = "scope";
    this.colouring = "cluster";
    this.scenes = {};
    this.scale = 1; this.x = 0; this.y = 0;
    this.selected = null;
    this.lit = new Set();
    this.red = null;
    this.drawn = false;
    this.listen();
    theme.listeners.push(() => this.redraw());
    new ResizeObserver(() => this.resize()).observe(this.canvas);
  }
  /** The whole graph in the chosen grouping, or the part that is looked at. */
  scene() {
    if (this.part) return this.part.scene;
    return this.scenes[this.grouping] ||= new Scene(this.model, this.grouping);
  }
  setGrouping(grouping) {
    if (this.grouping === grouping) return;
    this.grouping = grouping;
    byId("grouping").value = grouping;
    if (this.part) return;
    this.layOut();
    this.fit();
    if (this.selected?.node !== undefined) this.reveal(this.selected.node);
  }
  /** Shows these nodes only. */
  showPart(nodes, title, red = null) {
    this.part = { scene: new Scene(this.model, "flat", nodes), title, nodes };
    this.red = red;
    byId("whole").hidden = false;
    byId("whole").textContent = `Back from ${title}`;
    this.layOut();
    this.fit();
  }
  showWhole() {
    if (!this.part) return;
    this.part = null;
    this.red = null;
    byId("whole").hidden = true;
    this.layOut();
    this.fit();
    if (this.selected?.node !== undefined) this.reveal(this.selected.node);
  }

  // --- places
  /** Lays out what is open, and puts down where everything is: boxes parents first. */
  layOut() {
    const scene = this.scene();
    scene.layout();
    this.boxes = [];
    this.wires = [];
    this.nodeBox = new Map();
    this.groupBox = new Map();
    const open = [[0, 0, 0, -1]];
    while (open.length) {
      const [id, dx, dy, parent] = open.pop();
      const layout = scene.groups[id].layout;
      const made = layout.items.map(item => {
        const box = { x: item.x + dx, y: item.y + dy, w: item.w, h: item.h, label: item.label, node: item.node, group: item.group, parent, layer: item.layer, edges: [] };
        const at = this.boxes.push(box) - 1;
        if (item.node !== undefined) this.nodeBox.set(item.node, at);
        else {
          this.groupBox.set(item.group, at);
          const group = scene.groups[item.group];
          if (group.open && group.layout) open.push([item.group, box.x + (box.w - group.layout.w) / 2, box.y + HEAD + PAD, at]);
        }
        return at;
      });
      for (const e of layout.edges) {
        const wire = { a: made[e.a], b: made[e.b], count: e.count, points: (e.points || []).map(([x, y]) => [x + dx, y + dy]), back: e.back, control: e.control };
        if (wire.points.length < 2) continue;
        this.boxes[wire.a].edges.push(wire);
        this.boxes[wire.b].edges.push(wire);
        this.wires.push(wire);
      }
    }
    const size = scene.groups[0].layout;
    this.size = { w: size.w, h: size.h };
    this.redraw();
  }
  /** The box that stands for node n, where it or a group around it is shown. */
  boxOf(n) {
    const shown = this.scene().shown(n);
    if (!shown) return undefined;
    return this.boxes[shown.node !== undefined ? this.nodeBox.get(shown.node) : this.groupBox.get(shown.group)];
  }
  resize() {
    const ratio = devicePixelRatio || 1, { clientWidth: w, clientHeight: h } = this.canvas;
    if (!w || !h) return;
    const first = !this.width;
    // What stands in the middle stays there.
    if (!first) { this.x += (w - this.width) / 2; this.y += (h - this.height) / 2; }
    this.width = w; this.height = h;
    this.canvas.width = Math.round(w * ratio);
    this.canvas.height = Math.round(h * ratio);
    if (!this.boxes) this.layOut();
    if (first) this.fit(); else this.draw();
  }
  fit() {
    if (!this.boxes) this.layOut();
    if (!this.width) return;
    const scale = Math.min(1.2, (this.width - 60) / Math.max(1, this.size.w), (this.height - 60) / Math.max(1, this.size.h));
    // A long thin graph is shown from its top at a size that can be read.
    this.scale = Math.max(scale, Math.min(0.75, (this.width - 60) / Math.max(1, this.size.w)), LEAST_SCALE);
    this.x = (this.width - this.size.w * this.scale) / 2;
    this.y = Math.max(30, (this.height - this.size.h * this.scale) / 2);
    this.redraw();
  }
  zoom(factor, cx = this.width / 2, cy = this.height / 2) {
    const scale = Math.min(MOST_SCALE, Math.max(LEAST_SCALE, this.scale * factor));
    this.x = cx - (cx - this.x) * scale / this.scale;
    this.y = cy - (cy - this.y) * scale / this.scale;
    this.scale = scale;
    this.redraw();
  }
  centre(box) {
    if (!this.width) return;
    this.scale = Math.min(1.2, Math.max(0.8, this.scale));
    this.x = this.width / 2 - (box.x + box.w / 2) * this.scale;
    this.y = this.height / 2 - (box.y + Math.min(box.h, this.height / this.scale) / 2) * this.scale;
    this.redraw();
  }
  /** Opens what hides n and moves there. */
  reveal(n) {
    if (this.part && !this.part.scene.groups[0].leaves.includes(n)) this.showWhole();
    this.scene().reveal(n);
    this.layOut();
    const box = this.boxOf(n);
    if (box) this.centre(box);
  }
  /** Makes sure that a box is in sight without moving more than needed. */
  follow(box) {
    const left = box.x * this.scale + this.x, top = box.y * this.scale + this.y;
    if (left < 20 || top < 20 || left + box.w * this.scale > this.width - 20 || top + Math.min(box.h * this.scale, 200) > this.height - 20) this.centre(box);
    else this.redraw();
  }

  // --- drawing
  redraw() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => { this.asked = false; this.draw(); });
  }
  draw() {
    if (!this.boxes || !this.width) return;
    const c = this.context, ratio = devicePixelRatio || 1;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = theme.colours.bg;
    c.fillRect(0, 0, this.width, this.height);
    c.setTransform(ratio * this.scale, 0, 0, ratio * this.scale, ratio * this.x, ratio * this.y);
    const view = { left: -this.x / this.scale, top: -this.y / this.scale, right: (this.width - this.x) / this.scale, bottom: (this.height - this.y) / this.scale };
    this.paint(new CanvasPainter(c, theme.colours.sans), view, this.scale);
    if (!this.drawn) { this.drawn = true; performance.mark("graph-drawn"); document.documentElement.dataset.graph = "drawn"; }
  }
  /** Draws what `view` touches; below a scale, letters are left out. */
  paint(painter, view, scale) {
    const seen = box => !view || (box.x < view.right && box.x + box.w > view.left && box.y < view.bottom && box.y + box.h > view.top);
    const colours = theme.colours;
    // A group's ground lies under its wires, and those under boxes: boxes come parents first.
    for (const box of this.boxes) if (box.group !== undefined && this.scene().groups[box.group].open && seen(box)) this.paintOpen(painter, box, scale);
    for (const wire of this.wires) {
      const a = this.boxes[wire.a], b = this.boxes[wire.b];
      if (view && (Math.min(a.x, b.x) > view.right || Math.max(a.x + a.w, b.x + b.w) < view.left || Math.min(a.y, b.y) > view.bottom || Math.max(a.y + a.h, b.y + b.h) < view.top)) continue;
      painter.line(wire.points, { stroke: colours.edge, width: wire.control ? 1 : Math.min(5, 1 + Math.log2(wire.count) * 0.6), dash: wire.control ? [1.5, 4] : wire.back ? [5, 4] : undefined, arrow: scale > 0.35 ? 5 : 0 });
    }
    this.paintChosen(painter);
    for (const box of this.boxes) {
      if (!seen(box)) continue;
      if (box.node !== undefined) this.paintLeaf(painter, box, scale);
      else if (!this.scene().groups[box.group].open) this.paintClosed(painter, box, scale);
    }
  }
  paintOpen(painter, box, scale) {
    const colours = theme.colours, group = this.scene().groups[box.group];
    const chosen = this.selected?.group === box.group;
    const own = group.cluster !== undefined ? colours.clusters[group.cluster % 8] : null;
    const ground = group.depth % 2 ? colours.group : colours.bg;
    painter.rect(box.x, box.y, box.w, box.h, { r: 8, fill: own ? mixed(colours.bg, own, 0.1) : ground, stroke: chosen ? colours.select : own || colours.line, width: chosen ? 2.5 : 1 });
    if (scale * 12 >= 5) painter.text(box.x + 12, box.y + HEAD / 2 + 2, "▾ " + box.label, { size: 12, weight: 600, fill: colours.soft, most: box.w - 20 });
  }
  paintClosed(painter, box, scale) {
    const colours = theme.colours, told = this.scene().told(box.group);
    const group = this.scene().groups[box.group];
    const lit = this.litGroups?.has(box.group), chosen = this.selected?.group === box.group;
    painter.rect(box.x + 3, box.y + 3, box.w, box.h, { r: 8, fill: colours.group, stroke: colours.line });
    const ms = this.colouring === "time" && this.ownTimes ? this.scene().sum(box.group, n => this.ownTimes.get(n) || 0) : 0;
    const fill = this.colouring === "flops" ? this.ramp(told.flops, this.model.flopsMost * 4) : ms ? this.ramp(ms, this.timeOfAll) : colours.panel;
    painter.rect(box.x, box.y, box.w, box.h, { r: 8, fill: lit && !chosen ? colours["select-soft"] : fill, stroke: chosen || lit ? colours.select : colours["node-line"], width: chosen ? 2.5 : lit ? 1.5 : 1, dash: group.outside && !chosen ? [4, 3] : undefined });
    if (scale * 12 >= 5) {
      painter.text(box.x + 10, box.y + 15, box.label, { size: 12, weight: 600, fill: colours.ink, most: box.w - 20 });
      painter.text(box.x + 10, box.y + 31, this.scene().line(box.group) + (ms ? ` · ${inTime(ms)}` : ""), { size: 10.5, fill: colours.soft, most: box.w - 20 });
    }
    // How much of it is in which cluster.
    const wide = box.w - 20;
    painter.rect(box.x + 10, box.y + 42, wide, 4, { r: 2, fill: colours.rest });
    let at = 0;
    for (const [cluster, nodes] of told.by.slice(0, 12)) {
      const width = wide * nodes / told.nodes;
      painter.rect(box.x + 10 + at, box.y + 42, width, 4, { r: 2, fill: colours.clusters[cluster % 8] });
      at += width;
    }
    if (told.blocking) painter.rect(box.x + 10 + at, box.y + 42, Math.max(3, wide * told.blocking / told.nodes), 4, { r: 2, fill: colours.warn });
  }
  paintLeaf(painter, box, scale) {
    const colours = theme.colours, n = box.node, model = this.model;
    const chosen = this.selected?.node === n, lit = this.lit.has(n);
    const cluster = model.cluster(n), blocking = model.blocking[n];
    let fill = colours.node, stroke = colours["node-line"], dash = cluster === null ? [4, 3] : undefined, width = 1;
    if (this.colouring === "cluster" && cluster !== null) { stroke = colours.clusters[cluster % 8]; fill = mixed(colours.node, stroke, 0.24); }
    if (this.colouring === "reason" && cluster !== null) { stroke = colours.clusters[0]; fill = mixed(colours.node, stroke, 0.24); }
    if (this.colouring === "flops") fill = this.ramp(model.flops(n) || 0, model.flopsMost);
    if (this.colouring === "time" && this.times) fill = this.ramp(this.times.get(n) || 0, this.timeMost);
    if (blocking && (this.colouring === "cluster" || this.colouring === "reason")) { fill = colours["select-soft"]; stroke = colours.warn; dash = undefined; width = 1.5; }
    if (lit) { stroke = colours.select; width = 2; dash = undefined; }
    if (chosen) { stroke = colours.select; width = 3; dash = undefined; }
    const extras = this.scene().extras.get(n), top = box.y + (extras ? 8 : 0);
    if (extras && scale > 0.3) extras.slice(0, 8).forEach((m, i) => {
      const hit = this.selected?.node === m;
      painter.circle(box.x + 12 + i * 11, box.y + 6, 4, { fill: model.cluster(m) === null ? colours.node : mixed(colours.node, colours.clusters[model.cluster(m) % 8], 0.5), stroke: hit ? colours.select : colours["node-line"], width: hit ? 2.5 : 1 });
    });
    painter.rect(box.x, top, box.w, LEAF_HEIGHT, { r: 6, fill, stroke, width, dash });
    if (scale * 12 < 5) return;
    painter.text(box.x + 9, top + 13, box.label, { size: 12, weight: 500, fill: colours.ink, most: box.w - (blocking ? 26 : 16) });
    painter.text(box.x + 9, top + 26, model.op(n), { size: 10, fill: colours.soft, most: box.w - 16 });
    if (blocking) painter.text(box.x + box.w - 9, top + 13, "!", { size: 13, weight: 700, fill: colours.warn, align: "right" });
  }
  /** The edges of what is chosen, to where its neighbours are shown; an edge that joined nothing in red. */
  paintChosen(painter) {
    const colours = theme.colours;
    if (this.red) {
      const a = this.boxOf(this.red.from), b = this.boxOf(this.red.to);
      if (a && b && a !== b) painter.line([[a.x + a.w / 2, a.y + a.h], [b.x + b.w / 2, b.y]], { stroke: colours.select, width: 3, dash: [7, 5], arrow: 9 });
    }
    const n = this.selected?.node;
    if (n === undefined) return;
    const here = this.boxOf(n);
    if (!here) return;
    const wire = (a, b) => {
      if (a && b && a !== b) painter.line([[a.x + a.w / 2, a.y + a.h], [b.x + b.w / 2, b.y]], { stroke: colours.select, width: 1.8, arrow: 7 });
    };
    for (const m of this.model.inputs(n).slice(0, 200)) wire(this.boxOf(m), here);
    for (const m of this.model.usersOf(n).slice(0, 200)) wire(here, this.boxOf(m));
  }
  ramp(value, most) {
    if (!value || !most) return theme.colours.node;
    return mixed(theme.colours.node, theme.colours.clusters[0], 0.12 + 0.78 * Math.sqrt(Math.min(1, value / most)));
  }

  // --- choosing
  select(selected, options = {}) {
    this.selected = selected;
    if (options.reveal && selected?.node !== undefined) this.reveal(selected.node);
    this.redraw();
  }
  /** Lights nodes, and the closed groups that hold them. */
  light(nodes) {
    this.lit = new Set(nodes);
    this.litGroups = new Set();
    if (this.lit.size < 5000) for (const n of this.lit) { const shown = this.scene().shown(n); if (shown?.group !== undefined) this.litGroups.add(shown.group); }
    this.redraw();
  }
  at(px, py) {
    const x = (px - this.x) / this.scale, y = (py - this.y) / this.scale;
    for (let i = this.boxes.length - 1; i >= 0; i--) {
      const box = this.boxes[i];
      if (x < box.x || y < box.y || x > box.x + box.w || y > box.y + box.h) continue;
      const extras = box.node !== undefined && this.scene().extras.get(box.node);
      if (extras && y < box.y + 11) { const hit = extras[Math.floor((x - box.x - 6.5) / 11)]; if (hit !== undefined) return { node: hit }; }
      return box.node !== undefined ? { node: box.node } : { group: box.group };
    }
    return null;
  }
  toggle(group) {
    const scene = this.scene(), before = this.boxes[this.groupBox.get(group)];
    const old = before && [before.x * this.scale + this.x, before.y * this.scale + this.y];
    scene.setOpen(group, !scene.groups[group].open);
    this.layOut();
    const now = this.boxes[this.groupBox.get(group)];
    // It stays under the hand.
    if (old && now) { this.x = old[0] - now.x * this.scale; this.y = old[1] - now.y * this.scale; }
    this.redraw();
  }
  listen() {
    const canvas = this.canvas;
    let drag = null;
    canvas.addEventListener("pointerdown", e => {
      drag = { x: e.offsetX, y: e.offsetY, moved: false };
      canvas.setPointerCapture(e.pointerId);
    });
    canvas.addEventListener("pointermove", e => {
      if (!drag) return;
      const dx = e.offsetX - drag.x, dy = e.offsetY - drag.y;
      if (!drag.moved && Math.hypot(dx, dy) < 4) return;
      drag.moved = true;
      canvas.classList.add("dragging");
      this.x += dx; this.y += dy;
      drag.x = e.offsetX; drag.y = e.offsetY;
      this.redraw();
    });
    canvas.addEventListener("pointerup", e => {
      const clicked = drag && !drag.moved;
      drag = null;
      canvas.classList.remove("dragging");
      if (clicked) this.onSelect(this.at(e.offsetX, e.offsetY), { byHand: true });
    });
    canvas.addEventListener("dblclick", e => {
      const hit = this.at(e.offsetX, e.offsetY);
      if (hit?.group !== undefined) this.toggle(hit.group);
    });
    canvas.addEventListener("wheel", e => {
      e.preventDefault();
      if (e.ctrlKey || !e.shiftKey) this.zoom(Math.exp(-e.deltaY * (e.ctrlKey ? 0.01 : 0.0016)), e.offsetX, e.offsetY);
      else { this.x -= e.deltaY; this.redraw(); }
    }, { passive: false });
    canvas.addEventListener("keydown", e => this.key(e));
  }
  /** Moves from box to box: down to a reader, up to an input, sideways in the layer; Enter opens, Escape goes out. */
  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const box = this.chosenBox();
    const go = { ArrowDown: () => this.along(box, "a", "b"), ArrowUp: () => this.along(box, "b", "a"), ArrowLeft: () => this.beside(box, -1), ArrowRight: () => this.beside(box, 1) }[e.key];
    if (go) {
      e.preventDefault();
      const next = box ? go() : this.boxes[0];
      if (next) { this.onSelect(next.node !== undefined ? { node: next.node } : { group: next.group }, { byKey: true }); this.follow(next); }
      return;
    }
    if (e.key === "Enter" || e.key === " ") {
      e.preventDefault();
      if (this.selected?.group !== undefined) this.toggle(this.selected.group);
      else if (this.selected?.node !== undefined) byId("inspector").focus();
    } else if (e.key === "Escape" || e.key === "Backspace") {
      e.preventDefault();
      if (box && box.parent >= 0) { const out = this.boxes[box.parent]; this.onSelect({ group: out.group }, { byKey: true }); this.follow(out); }
      else if (this.part) this.showWhole();
      else this.onSelect(null, {});
    }
  }
  chosenBox() {
    if (this.selected?.node !== undefined) return this.boxOf(this.selected.node);
    if (this.selected?.group !== undefined) return this.boxes[this.groupBox.get(this.selected.group)];
    return undefined;
  }
  along(box, here, there) {
    const middle = b => b.x + b.w / 2;
    let best = null;
    for (let at = box; at && !best; at = this.boxes[at.parent]) {
      for (const wire of at.edges) {
        if (this.boxes[wire[here]] !== at) continue;
        const other = this.boxes[wire[there]];
        if (!best || Math.abs(middle(other) - middle(box)) < Math.abs(middle(best) - middle(box))) best = other;
      }
    }
    return best;
  }
  beside(box, way) {
    const row = this.boxes.filter(b => b.parent === box.parent && Math.abs(b.y + b.h / 2 - (box.y + box.h / 2)) < 30).sort((a, b) => a.x - b.x);
    return row[row.indexOf(box) + way];
  }
  /** The whole picture as SVG. */
  svg() {
    const painter = new SvgPainter(theme.colours.sans);
    this.paint(painter, null, 1);
    return painter.picture(-30, -30, this.size.w + 60, this.size.h + 60, theme.colours.bg);
  }
}
