// The page: views, choices, the fragment of the address.

const KEYS = [
  ["/", "find a node"], ["↑ ↓ ← →", "to an input, a reader, the next in the row"], ["Enter", "open or close a group; from a node to its details"],
  ["Esc", "to the group around it; back to the whole graph"], ["f", "fit"], ["+ −", "zoom"], ["g", "group by name scope or by cluster"],
  ["n", "the neighbourhood of the node"], ["p", "a path from the node to another"], ["c", "the code of the node's cluster"],
  ["1 … 5", "HLO, kernels, assembly, memory, profile"], ["a", "the answer"], ["t", "light or dark"], ["?", "this list"],
];

class App {
  constructor(data) {
    this.model = new Model(data);
    this.selected = null;
    this.codes = new Map();
    this.state = "answer";
    this.finder = new Finder(this.model, n => this.choose({ node: n }, { reveal: true }));
    this.inspector = new Inspector(this);
    this.codeView = new CodeView(this);
    this.listen();
    this.follow();
    document.documentElement.dataset.ready = "yes";
    performance.mark("ready");
  }
  /** The graph's view, made when it is looked at first. */
  get view() { return this.made ||= new GraphView(this.model, (selected, how) => this.choose(selected, how)); }
  show(state) {
    this.state = state;
    byId("answer").hidden = state !== "answer";
    byId("workspace").hidden = state !== "graph";
    for (const name of ["answer", "graph"]) {
      if (name === state) byId(`tab-${name}`).setAttribute("aria-current", "page"); else byId(`tab-${name}`).removeAttribute("aria-current");
    }
    if (state === "graph") {
      this.view.resize();
      this.legend();
      if (!this.selected) this.inspector.show(null);
    }
  }
  /** What the fragment asks for. */
  follow() {
    const asked = new Map(location.hash.slice(1).split("&").filter(Boolean).map(part => {
      const at = part.indexOf("=");
      return at < 0 ? [part, ""] : [part.slice(0, at), unquoted(part.slice(at + 1))];
    }));
    const model = this.model;
    if (asked.get("group") === "cluster" || asked.get("group") === "scope") { this.show("graph"); this.view.setGrouping(asked.get("group")); }
    const number = (key, many) => { const n = Number(asked.get(key)); return asked.has(key) && Number.isInteger(n) && n >= 0 && n < many ? n : undefined; };
    const cluster = number("cluster", model.clusters.length), edge = number("edge", model.data.edges.length);
    if (asked.has("node")) {
      const n = model.find(asked.get("node"));
      this.show("graph");
      if (n !== undefined) this.choose({ node: n }, { reveal: true, quiet: true });
      else this.say(`The graph has no node ${asked.get("node")}`);
    } else if (edge !== undefined) this.showEdge(edge);
    else if (cluster !== undefined) { this.show("graph"); this.choose({ cluster }, { quiet: true }); }
    else this.show(asked.get("view") === "graph" || asked.has("group") ? "graph" : "answer");
    const whole = /^m\d+$/.test(asked.get("code") || "") && model.codeOf(asked.get("code")) !== null;
    const code = whole ? asked.get("code") : number("code", model.clusters.length);
    if (asked.has("panes")) this.codeView.setPanes(asked.get("panes"));
    if (code !== undefined) this.openCode(code, number("kernel", Infinity));
  }
  /** Keeps the address in step, so that it can be sent to others. */
  noteState() {
    const s = this.selected, parts = [];
    if (s?.node !== undefined) parts.push(`node=${encodeURIComponent(this.model.name(s.node))}`);
    else if (s?.edge !== undefined) parts.push(`edge=${s.edge}`);
    else if (s?.cluster !== undefined) parts.push(`cluster=${s.cluster}`);
    else parts.push(`view=${this.state}`);
    if (this.made && this.view.grouping === "cluster") parts.push("group=cluster");
    if (this.codeView.cluster !== null) {
      parts.push(`code=${this.codeView.cluster}`);
      if (this.codeView.chosen?.kernel !== undefined) parts.push(`kernel=${this.codeView.chosen.kernel}`);
      if (this.codeView.panes()) parts.push(`panes=${this.codeView.panes()}`);
    }
    const hash = "#" + parts.join("&");
    if (hash === location.hash) return;
    try { history.replaceState(null, "", hash); } catch { /* some browsers keep the address of a file as it is */ }
  }
  choose(selected, { reveal, quiet } = {}) {
    this.selected = selected;
    if (this.state !== "graph") this.show("graph");
    const view = this.view;
    view.select(selected, { reveal });
    view.light(selected?.cluster !== undefined ? this.members(selected.cluster) : []);
    this.inspector.show(selected);
    this.say(!selected ? "" : selected.node !== undefined ? `${this.model.name(selected.node)}, ${this.model.op(selected.node)}` : selected.group !== undefined ? view.scene().groups[selected.group].label : "");
    if (selected?.node !== undefined && this.codeView.cluster !== null) {
      const cluster = this.model.cluster(selected.node);
      if (cluster === this.codeView.cluster || typeof this.codeView.cluster === "string") this.view.light(this.codeView.follow(selected.node).nodes);
      else if (cluster !== null && this.model.clusters[cluster].code !== null) this.openCode(cluster);
    }
    if (!quiet) this.noteState();
  }
  members(cluster) {
    const all = [];
    for (let n = 0; n < this.model.count; n++) if (this.model.cluster(n) === cluster) all.push(n);
    return all;
  }
  chosenInCode(lit, node) {
    if (node !== undefined) {
      this.selected = { node };
      this.view.select(this.selected, { reveal: true });
      this.inspector.show(this.selected);
    }
    this.view.light(lit.nodes);
    this.noteState();
  }
  showCluster(i) {
    this.view.showWhole();
    this.view.setGrouping("cluster");
    const scene = this.view.scene(), group = scene.groups.find(g => g.cluster === i);
    if (!group) return;
    scene.setOpen(group.id, true);
    this.view.layOut();
    this.view.centre(this.view.boxes[this.view.groupBox.get(group.id)]);
    this.noteState();
  }
  showEdge(i) {
    const e = this.model.data.edges[i];
    this.show("graph");
    this.selected = { edge: i };
    const ends = [e.from, e.to].filter(n => n !== null);
    this.view.select(this.selected);
    this.view.light(e.path || []);
    const near = ends.flatMap(n => this.model.around(n, 1, 12));
    this.view.showPart([...new Set([...ends, ...(e.path || []), ...near])].slice(0, 400), "the edge", e.from !== null && e.to !== null ? e : null);
    this.inspector.show(this.selected);
  }
  neighbourhood(n, distance) {
    const nodes = this.model.around(n, distance, 400);
    this.view.showPart(nodes, `${distance} step${distance > 1 ? "s" : ""} around ${this.model.shortName(n)}`);
    this.view.select({ node: n });
    this.view.follow(this.view.boxOf(n));
    this.view.light([]);
    this.say(`${nodes.length} nodes`);
  }
  askPath(n) {
    this.finder.ask(`Path from ${this.model.shortName(n)} to …`, m => {
      const way = this.model.path(n, m) || this.model.path(m, n);
      if (!way) {
        this.say("No path leads from one to the other");
        this.inspector.root.prepend(element("div", { class: "why" }, element("p", {}, `No path leads from ${this.model.shortName(n)} to ${this.model.shortName(m)}, nor back.`)));
        return;
      }
      this.view.showPart(way, `the path of ${way.length} nodes`);
      this.view.light(way);
      this.inspector.show({ node: n });
      this.inspector.root.append(...this.inspector.list("The path", way.map(x => [this.inspector.link(x), " ", element("small", {}, this.model.op(x))])));
      this.say(`A path of ${way.length} nodes`);
    });
  }
  /** The code of a cluster, by its number, or of a function compiled whole, as `m0`. */
  async code(cluster) {
    const at = this.model.codeOf(cluster);
    if (at === null) return null;
    if (!this.codes.has(at)) this.codes.set(at, unpacked(`code-${at}`).then(text => new CodeIndex(this.model, JSON.parse(text))));
    return this.codes.get(at);
  }
  async openCode(cluster, kernel) {
    const index = await this.code(cluster);
    if (!index) { this.say("It was not compiled"); return; }
    if (this.state !== "graph") this.show("graph");
    this.codeView.show(cluster, index, kernel);
    if (this.selected?.node !== undefined && this.model.cluster(this.selected.node) === cluster) this.view.light(this.codeView.follow(this.selected.node).nodes);
    this.noteState();
  }
  /** Times by node: those of the kernels that compute it; and, for sums, those of the kernels whose heaviest op it is. */
  async times() {
    const times = new Map(), own = new Map();
    const whole = this.model.wholes.map((_, i) => `m${i}`).filter(m => this.model.codeOf(m) !== null);
    for (const c of whole.length ? whole : this.model.clusters.keys()) {
      const index = await this.code(c);
      index?.code.kernels.forEach(kernel => {
        const nodes = new Set(kernel.insts.map(inst => index.instNode.get(inst)).filter(n => n !== undefined));
        for (const n of nodes) times.set(n, (times.get(n) || 0) + (kernel.ms || 0));
        const heaviest = this.model.find(kernel.label.split(" ").pop()) ?? [...nodes][0];
        if (heaviest !== undefined) own.set(heaviest, (own.get(heaviest) || 0) + (kernel.ms || 0));
      });
    }
    this.view.times = times;
    this.view.ownTimes = own;
    this.view.timeOfAll = [...own.values()].reduce((sum, ms) => sum + ms, 0);
    this.view.timeMost = Math.max(0, ...times.values());
    this.view.redraw();
  }
  legend() {
    const entries = { cluster: [["c", "in a cluster, by colour"], ["outside", "outside"], ["blocker", "blocks (!)"]], reason: [["c", "in a cluster"], ["outside", "outside"], ["blocker", "blocks (!)"]], flops: [["ramp", "none to most FLOPs"]], time: [["ramp", "none to most time of its kernels"]] };
    byId("legend").replaceChildren(...entries[this.view.colouring].map(([kind, text]) => element("span", {}, element("i", { class: kind === "c" ? "k0" : kind }), text)), element("span", {}, "● constant at its reader"));
  }
  say(text) { byId("live").textContent = text; }
  listen() {
    addEventListener("hashchange", () => this.follow());
    byId("grouping").addEventListener("change", e => { this.view.setGrouping(e.target.value); this.noteState(); });
    byId("colouring").addEventListener("change", e => {
      this.view.colouring = e.target.value;
      if (e.target.value === "time") this.times();
      this.legend();
      this.view.redraw();
    });
    if (this.model.data.summary.profiled) byId("colouring").append(element("option", { value: "time" }, "time"));
    byId("whole").addEventListener("click", () => this.view.showWhole());
    byId("fit").addEventListener("click", () => this.view.fit());
    byId("in").addEventListener("click", () => this.view.zoom(1.25));
    byId("out").addEventListener("click", () => this.view.zoom(0.8));
    byId("svg").addEventListener("click", () => download(fileName(this.model.data.source, ".svg"), "image/svg+xml", this.view.svg()));
    byId("json").addEventListener("click", async () => download(fileName(this.model.data.source, ".json"), "application/json", await wholeJson(this.model)));
    byId("help").addEventListener("click", () => this.keys());
    addEventListener("keydown", e => this.key(e));
  }
  keys() {
    const dialog = byId("keys");
    dialog.replaceChildren(element("h2", {}, "Keys"), element("dl", {}, ...KEYS.flatMap(([key, what]) => [element("dt", {}, key), element("dd", {}, what)])),
      element("p", { class: "note" }, "Finding: words of a name or op, or op:Conv2D, code:TFA0508, cluster:0."));
    dialog.showModal();
  }
  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey || byId("keys").open) return;
    const at = e.target;
    if (at.tagName === "INPUT" || at.tagName === "SELECT") return;
    const n = this.selected?.node;
    const act = {
      "/": () => byId("search").focus(), "?": () => this.keys(), t: () => byId("theme").click(),
      a: () => { this.selected = null; this.show("answer"); this.noteState(); }, f: () => this.view.fit(), "+": () => this.view.zoom(1.25), "=": () => this.view.zoom(1.25), "-": () => this.view.zoom(0.8),
      g: () => { this.show("graph"); this.view.setGrouping(this.view.grouping === "scope" ? "cluster" : "scope"); this.noteState(); },
      n: () => n !== undefined && this.neighbourhood(n, this.inspector.distance), p: () => n !== undefined && this.askPath(n),
      c: () => { const c = this.selected?.cluster ?? (n !== undefined ? this.model.cluster(n) : null) ?? this.firstCode(); if (c !== null && c !== undefined) this.openCode(c); },
    }[e.key];
    const pane = PANES[Number(e.key) - 1];
    if (pane && this.codeView.cluster !== null) { e.preventDefault(); this.codeView.toggle(pane[0]); byId(`pane-${pane[0]}`)?.querySelector(".body").focus(); return; }
    if (!act) return;
    e.preventDefault();
    act();
    if (["g", "f", "n"].includes(e.key)) byId("canvas").focus();
  }
  firstCode() { if (this.model.codeOf("m0") !== null) return "m0"; const c = this.model.clusters.findIndex(c => c.code !== null); return c < 0 ? null : c; }
}

function unquoted(text) { try { return decodeURIComponent(text); } catch { return text; } }

theme.start();
unpacked("graph").then(text => {
  const app = new App(JSON.parse(text));
  // For the console, and for those who test the page.
  window.tfaot = { app, find: text => findNodes(app.model, text).map(n => app.model.name(n)), svg: () => app.view.svg(), json: () => wholeJson(app.model) };
});
