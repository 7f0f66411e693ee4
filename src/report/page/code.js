// The code of a compiled cluster in panes side by side. What is chosen in one, or in the graph, is lit in all.

const PANES = [["hlo", "HLO"], ["kernels", "Kernels"], ["asm", "Assembly"], ["memory", "Memory"], ["profile", "Profile"]];

const USUAL = ["hlo", "asm", "memory"];

/** Which instruction is which node, which kernel computes it, which buffers that touches. */
class CodeIndex {
  constructor(model, code) {
    this.code = code;
    this.lines = code.hlo.split("\n");
    this.lineInst = [];
    this.instLines = new Map();
    this.instNode = new Map();
    this.nodeInsts = new Map();
    this.lines.forEach((line, i) => {
      const [, name] = line.match(/^\s+(?:ROOT )?%?([^\s=]+) = /) || [];
      this.lineInst.push(name || null);
      if (!name) return;
      if (!this.instLines.has(name)) this.instLines.set(name, []);
      this.instLines.get(name).push(i);
      const [, op] = line.match(/op_name="((?:[^"\\]|\\.)*)"/) || [];
      const node = op === undefined ? undefined : model.find(op.replace(/\\(.)/g, "$1"));
      if (node === undefined) return;
      this.instNode.set(name, node);
      if (!this.nodeInsts.has(node)) this.nodeInsts.set(node, new Set());
      this.nodeInsts.get(node).add(name);
    });
    this.instKernels = new Map();
    this.bufferKernels = code.buffers.map(() => []);
    code.kernels.forEach((kernel, k) => {
      for (const inst of kernel.insts) {
        if (!this.instKernels.has(inst)) this.instKernels.set(inst, []);
        this.instKernels.get(inst).push(k);
      }
      for (const b of kernel.buffers) this.bufferKernels[b].push(k);
    });
  }
  /** All that belongs to what is chosen: a node, an instruction, a kernel or a buffer. */
  lit(chosen) {
    const lit = { nodes: new Set(), insts: new Set(), kernels: new Set(), buffers: new Set() };
    const addKernel = k => { lit.kernels.add(k); for (const b of this.code.kernels[k].buffers) lit.buffers.add(b); };
    const addInst = inst => { lit.insts.add(inst); const n = this.instNode.get(inst); if (n !== undefined) lit.nodes.add(n); };
    if (chosen.node !== undefined) {
      lit.nodes.add(chosen.node);
      for (const inst of this.nodeInsts.get(chosen.node) || []) lit.insts.add(inst);
    } else if (chosen.inst !== undefined) addInst(chosen.inst);
    for (const inst of lit.insts) for (const k of this.instKernels.get(inst) || []) addKernel(k);
    const whole = chosen.kernel !== undefined ? [chosen.kernel] : chosen.buffer !== undefined ? this.bufferKernels[chosen.buffer] : [];
    for (const k of whole) { addKernel(k); this.code.kernels[k].insts.forEach(addInst); }
    if (chosen.buffer !== undefined) lit.buffers = new Set([chosen.buffer]);
    return lit;
  }
}

/** Many lines of which only those in sight are in the page. */
class Lines {
  constructor(body, onChoose) {
    this.body = body;
    this.onChoose = onChoose;
    this.root = element("div", { class: "lines" });
    body.replaceChildren(this.root);
    body.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(body);
    this.set([], () => false);
  }
  /** `lines` of text; `isLit` says which are lit. */
  set(lines, isLit, scroll = false) {
    this.lines = lines;
    this.isLit = isLit;
    this.root.style.height = `${lines.length * 18}px`;
    const longest = lines.reduce((most, line) => Math.max(most, line.length), 0);
    this.root.style.width = `max(100%, ${Math.min(longest, 4000) + 4}ch)`;
    if (scroll) {
      const first = lines.findIndex((_, i) => isLit(i));
      if (first >= 0 && (first * 18 < this.body.scrollTop || first * 18 > this.body.scrollTop + this.body.clientHeight - 36)) this.body.scrollTop = Math.max(0, first * 18 - 54);
    }
    this.draw();
  }
  draw() {
    const from = Math.max(0, Math.floor(this.body.scrollTop / 18) - 10), to = Math.min(this.lines.length, from + Math.ceil(this.body.clientHeight / 18) + 20);
    const made = [];
    for (let i = from; i < to; i++) {
      const line = element("div", { class: this.isLit(i) ? "lit" : "", onclick: () => this.onChoose(i) }, ...shaded(this.lines[i].slice(0, 4000)));
      line.style.top = `${i * 18}px`;
      made.push(line);
    }
    this.root.replaceChildren(...made);
  }
}

/** A line with its first word, or the op behind `=`, set off, and what is less needed in grey. */
function shaded(line) {
  const meta = line.indexOf(", metadata={");
  const main = meta < 0 ? line : line.slice(0, meta), rest = meta < 0 ? "" : line.slice(meta);
  const [, before, word, after] = main.match(/^(.*? = (?:\([^=]*?\) |\S+ ))([\w-]+)(\(.*)$/) || main.match(/^(\s*)([a-z][\w.]*)(\s.*)?$/) || [];
  return word === undefined ? [main, element("span", { class: "quiet" }, rest)] : [before, element("span", { class: "key-word" }, word), after || "", element("span", { class: "quiet" }, rest)];
}

/** The kernel that takes longest, or does most where none was measured. */
function hottest(code) {
  const worth = code.kernels.map(k => k.ms ?? k.flops);
  const at = worth.indexOf(Math.max(...worth));
  return at < 0 ? undefined : at;
}

/** The scopes that the names of all kernels' nodes begin with. */
function commonScope(kernels) {
  const scopes = kernels.map(k => k.label.split(" ").pop().split("/").slice(0, -1)).filter(parts => parts.length);
  const [first = []] = scopes;
  const many = first.findIndex((part, i) => !scopes.every(parts => parts[i] === part));
  return (many < 0 ? first : first.slice(0, many)).join("/");
}

class CodeView {
  constructor(app) {
    this.app = app;
    this.open = new Set(USUAL);
    this.cluster = null;
    byId("close-drawer").addEventListener("click", () => this.close());
    this.resize();
    byId("panes").replaceChildren(...PANES.map(([id, title]) => element("button", { type: "button", id: `pane-button-${id}`, onclick: () => this.toggle(id) }, title)));
  }
  /** The bar above the panes is pulled to make them higher. */
  resize() {
    const drawer = byId("drawer"), bar = drawer.querySelector(".toolbar");
    bar.addEventListener("pointerdown", e => {
      if (e.target.closest("button")) return;
      const from = e.clientY, height = drawer.clientHeight;
      const move = e => { drawer.style.height = `${Math.min(innerHeight - 160, Math.max(160, height + from - e.clientY))}px`; };
      const stop = () => { bar.removeEventListener("pointermove", move); bar.removeEventListener("pointerup", stop); };
      bar.setPointerCapture(e.pointerId);
      bar.addEventListener("pointermove", move);
      bar.addEventListener("pointerup", stop);
    });
  }
  toggle(id) {
    if (this.open.has(id)) this.open.delete(id); else this.open.add(id);
    this.build();
    this.app.noteState();
  }
  /** The panes that are open, by their names with commas between; empty for the usual ones. */
  panes() {
    const open = PANES.map(([id]) => id).filter(id => this.open.has(id)).join(",");
    return open === USUAL.join(",") ? "" : open;
  }
  /** Opens the panes of such a list. */
  setPanes(list) {
    const known = PANES.map(([id]) => id).filter(id => list.split(",").includes(id));
    if (known.length) this.open = new Set(known);
  }
  close() {
    byId("drawer").hidden = true;
    this.cluster = null;
    this.app.noteState();
  }
  /** Shows the code of a cluster or function, `index` of it, with a kernel of it lit: by default the hottest. */
  show(cluster, index, kernel) {
    byId("drawer").hidden = false;
    if (this.cluster === cluster && kernel === undefined) return;
    this.cluster = cluster;
    this.index = index;
    this.chosen = { kernel: kernel < index.code.kernels.length ? kernel : hottest(index.code) };
    this.lit = this.chosen.kernel === undefined ? null : index.lit(this.chosen);
    const code = index.code, times = code.kernels.filter(k => k.ms !== undefined);
    const whole = this.app.model.wholes[String(cluster).slice(1)];
    const name = typeof cluster === "string" ? whole.signature || "The whole model" : this.app.model.clusters[cluster].name;
    byId("drawer-title").textContent = `${name}: ${code.kernels.length} kernel${code.kernels.length === 1 ? "" : "s"}, ${inBytes(code.workspace_bytes)} workspace` + (times.length ? `, ${inTime(times.reduce((s, k) => s + k.ms, 0))}` : "") + ` · ${code.target}`;
    this.build();
  }
  build() {
    const parts = this.parts = {};
    byId("pane-row").replaceChildren(...PANES.filter(([id]) => this.open.has(id)).map(([id, title]) => {
      const body = element("div", { class: `body ${id}`, tabindex: 0, "aria-label": title }), note = element("small", {});
      parts[id] = { body, note };
      if (id === "memory") new ResizeObserver(() => this.parts.memory?.body === body && drawMemory(parts.memory, this.index, this.lit, chosen => this.choose(chosen, "memory"))).observe(body);
      return element("div", { class: "pane", id: `pane-${id}` }, element("h3", {}, title, note), body);
    }));
    for (const [id] of PANES) byId(`pane-button-${id}`).setAttribute("aria-pressed", String(this.open.has(id)));
    if (parts.hlo) parts.hlo.lines = new Lines(parts.hlo.body, i => { const inst = this.index.lineInst[i]; if (inst) this.choose({ inst }, "hlo"); });
    for (const id of ["asm", "kernels"]) if (parts[id]) parts[id].lines = new Lines(parts[id].body, i => this.chooseStatement(parts[id].of?.[i], id));
    this.refresh();
  }
  /** A choice made in a pane, which stays as it is; the graph and the other panes follow. */
  choose(chosen, pane) {
    this.chosen = chosen;
    this.lit = this.index.lit(chosen);
    this.app.chosenInCode(this.lit, chosen.buffer === undefined ? [...this.lit.nodes][0] : undefined);
    this.refresh(pane);
  }
  /** A line of a kernel's loops or machine code is chosen, so that its statement lights in both. */
  chooseStatement(of, pane) {
    if (of) this.choose({ kernel: of.kernel, line: of.line > 1 ? of.line : undefined }, pane);
  }
  /** A choice made in the graph. */
  follow(node) {
    this.chosen = { node };
    this.lit = this.index.lit(this.chosen);
    this.refresh();
    return this.lit;
  }
  /** Draws the panes; each but `still` moves to what is lit. */
  refresh(still) {
    const { parts, index } = this, code = index.code, lit = this.lit, kernels = lit ? [...lit.kernels].sort((a, b) => a - b) : [];
    const line = this.chosen.line, isStatement = of => !!line && of.kernel === this.chosen.kernel && of.line === line;
    if (parts.hlo) parts.hlo.lines.set(index.lines, i => !!lit && index.lineInst[i] !== null && lit.insts.has(index.lineInst[i]), still !== "hlo");
    if (parts.hlo) parts.hlo.note.textContent = lit ? `${lit.insts.size} instructions lit` : "";
    const shown = kernels.length ? kernels.slice(0, 12) : code.kernels.map((_, k) => k);
    if (parts.kernels) {
      const lines = [], of = parts.kernels.of = [];
      for (const kernel of shown) code.kernels[kernel].text.trimEnd().split("\n").forEach((text, i) => { lines.push(text); of.push({ kernel, line: i + 1 }); });
      parts.kernels.lines.set(lines, i => isStatement(of[i]) || (!line && !!lit && lit.kernels.has(of[i].kernel) && of[i].line === 1), still !== "kernels");
      parts.kernels.note.textContent = kernels.length ? `${kernels.length} of ${code.kernels.length}` : `all ${code.kernels.length}`;
    }
    if (parts.asm) {
      const lines = [], of = parts.asm.of = [];
      for (const kernel of kernels.slice(0, 6)) code.kernels[kernel].asm.trimEnd().split("\n").forEach((text, i) => { lines.push(text); of.push({ kernel, line: code.kernels[kernel].asm_lines[i] }); });
      if (!line) parts.asm.body.scrollTop = 0;
      parts.asm.lines.set(lines, i => isStatement(of[i]) || (!line && /^\S+_k\d+:/.test(lines[i])), !!line);
      parts.asm.note.textContent = kernels.length ? kernels.slice(0, 6).map(k => `k${k}`).join(", ") : "";
      if (!lines.length) parts.asm.body.firstChild.replaceChildren(element("p", { class: "empty" }, lit ? "No kernel computes what is chosen: it was folded away, or is a constant." : "Choose a node, an instruction or a kernel."));
    }
    if (parts.memory) drawMemory(parts.memory, index, lit, chosen => this.choose(chosen, "memory"));
    if (parts.profile) this.profile(parts.profile, lit, still !== "profile");
  }
  profile(part, lit, follows) {
    const code = this.index.code, timed = code.kernels.some(k => k.ms !== undefined);
    const scope = commonScope(code.kernels);
    const total = code.kernels.reduce((sum, k) => sum + (timed ? k.ms : k.flops), 0) || 1;
    const rows = code.kernels.map((kernel, k) => ({ kernel, k, worth: timed ? kernel.ms : kernel.flops })).sort((a, b) => b.worth - a.worth);
    part.note.textContent = timed ? `least of ${grouped(code.runs)} calls` : "by FLOPs: --profile measures";
    const head = ["Kernel", "", timed ? "time" : "FLOPs", "share", "GFLOP/s", "GB/s"];
    part.body.replaceChildren(element("table", { class: "rows" }, element("thead", {}, element("tr", {}, ...head.map(h => element("th", {}, h)))),
      element("tbody", {}, ...rows.map(({ kernel, k, worth }) => element("tr", { class: lit?.kernels.has(k) ? "lit" : "", onclick: () => this.choose({ kernel: k }, "profile") },
        element("td", {}, `k${k}`), element("td", { title: kernel.label }, scope ? kernel.label.replace(` ${scope}/`, " ") : kernel.label),
        element("td", { class: "number" }, timed ? inTime(worth) : operations(worth)),
        element("td", { class: "number" }, `${(100 * worth / total).toFixed(1)} %`),
        element("td", { class: "number" }, timed && kernel.flops ? (kernel.flops / (kernel.ms * 1e6)).toFixed(1) : "–"),
        element("td", { class: "number" }, timed ? (kernel.bytes / (kernel.ms * 1e6)).toFixed(1) : "–"))))));
    if (follows) part.body.querySelector(".lit")?.scrollIntoView({ block: "nearest" });
  }
}
