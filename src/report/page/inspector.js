// The column beside the graph: what is chosen, why it is where it is, and what is next to it.

const MOST_LISTED = 40;

class Inspector {
  constructor(app) {
    this.app = app;
    this.model = app.model;
    this.root = byId("inspector");
    this.distance = 2;
  }
  show(selected) {
    const parts = !selected ? this.nothing() : selected.node !== undefined ? this.node(selected.node)
      : selected.edge !== undefined ? this.edge(selected.edge)
      : selected.cluster !== undefined ? this.cluster(selected.cluster) : this.group(selected.group);
    this.root.replaceChildren(...parts.filter(Boolean));
    this.root.scrollTop = 0;
  }
  link(n, text) {
    return element("a", { href: `#node=${encodeURIComponent(this.model.name(n))}`, title: this.model.name(n) }, text || this.model.shortName(n));
  }
  clusterLink(i) {
    return element("a", { href: `#cluster=${i}` }, element("span", { class: `key k${i % 8}` }), this.model.clusters[i].name);
  }
  list(title, items) {
    if (!items.length) return [];
    const shown = items.slice(0, MOST_LISTED).map(item => element("li", {}, ...item));
    if (items.length > MOST_LISTED) shown.push(element("li", {}, element("small", {}, `and ${items.length - MOST_LISTED} more`)));
    return [element("h3", {}, `${title} (${items.length})`), element("ul", {}, ...shown)];
  }
  facts(pairs) {
    return element("dl", { class: "facts" }, ...pairs.filter(p => p && p[1] !== "" && p[1] !== null).flatMap(([key, value]) => [element("dt", {}, key), element("dd", {}, value)]));
  }
  nothing() {
    const worst = this.model.data.blockers.filter(b => b.blocks).slice(0, 6);
    return [
      element("h2", {}, "Nothing chosen"),
      element("p", { class: "path" }, "Click a box, use the arrow keys, or find a node by name. ? lists the keys."),
      ...this.list("What keeps most outside", worst.map(b => [this.link(b.nodes[0], b.op || b.slug), " ", element("small", {}, `${grouped(b.nodes.length)} × ${b.slug}`)])),
      ...this.list("Clusters", this.model.clusters.map((c, i) => [this.clusterLink(i), " ", element("small", {}, `${grouped(c.nodes)} nodes` + (c.flops ? `, ${operations(c.flops)}` : ""))])),
    ];
  }
  node(n) {
    const model = this.model, cluster = model.cluster(n), reason = model.reason(n), name = model.name(n);
    const nodes = model.data.nodes, inputs = [];
    for (let i = 0; i < nodes.inputs[n].length; i += 2) {
      const m = nodes.inputs[n][i], port = nodes.inputs[n][i + 1];
      inputs.push([this.link(m), port ? `:${port}` : "", " ", element("span", { class: "type" }, model.types(m)[port] || "")]);
    }
    for (const m of nodes.controls[n]) inputs.push([element("small", {}, "waits for "), this.link(m)]);
    const users = model.usersOf(n).map(m => [this.link(m), " ", element("small", {}, model.op(m))]);
    const scope = name.slice(0, name.length - model.shortName(n).length);
    return [
      element("h2", {}, model.shortName(n)),
      scope && element("p", { class: "path" }, scope),
      this.facts([
        ["Op", model.op(n)],
        ["Gives", element("span", { class: "type" }, model.types(n).join(", ") || "nothing")],
        ["FLOPs", operations(model.flops(n))],
        ["Device", element("span", { title: model.device(n) }, model.device(n).replace(/^.*device:/, ""))],
      ]),
      this.why(n, cluster, reason),
      this.acts(n, cluster),
      ...this.list("Reads", inputs),
      ...this.list("Read by", users),
      ...this.stops(e => e.from === n || e.to === n || (e.path || []).includes(n)),
      ...(model.attrs(n) ? [element("h3", {}, "Attributes"), element("pre", {}, model.attrs(n))] : []),
    ];
  }
  why(n, cluster, reason) {
    if (cluster !== null) {
      const c = this.model.clusters[cluster];
      return element("div", { class: "why in" }, element("p", {}, "In ", this.clusterLink(cluster), `, with ${grouped(c.nodes)} nodes.`));
    }
    if (!reason) return null;
    return element("div", { class: "why" },
      element("p", {}, element("b", {}, "In no cluster: "), ...spoken(reason.text), "."),
      element("p", {}, element("span", { class: "code" }, `${reason.code} ${reason.slug}`)),
      element("p", { class: "cure" }, reason.cure));
  }
  acts(n, cluster) {
    const app = this.app;
    const steps = element("select", { "aria-label": "Steps around the node", onchange: e => { this.distance = Number(e.target.value); app.neighbourhood(n, this.distance); } },
      ...[1, 2, 3, 4, 6, 8].map(d => element("option", { value: d, selected: d === this.distance }, `${d} step${d > 1 ? "s" : ""}`)));
    const hasCode = cluster !== null && this.model.clusters[cluster].code !== null;
    return element("div", { class: "acts" },
      element("button", { type: "button", onclick: () => app.neighbourhood(n, this.distance) }, "Neighbourhood"), steps,
      element("button", { type: "button", onclick: () => app.askPath(n) }, "Path to …"),
      hasCode && element("button", { type: "button", onclick: () => app.openCode(cluster) }, "Code"));
  }
  /** Edges that joined nothing, of those for which `wanted` holds. */
  stops(wanted) {
    const edges = this.model.data.edges;
    const found = [];
    for (let i = 0; i < edges.length && found.length <= MOST_LISTED * 4; i++) if (wanted(edges[i])) found.push(i);
    return this.list("Edges that joined nothing here", found.map(i => {
      const e = edges[i];
      return [element("a", { href: `#edge=${i}` }, `${e.from === null ? "?" : this.model.shortName(e.from)} → ${e.to === null ? "?" : this.model.shortName(e.to)}`), " ", element("small", {}, e.code)];
    }));
  }
  edge(i) {
    const e = this.model.data.edges[i], stop = this.model.data.stops.find(s => s.code === e.code);
    const end = n => n === null ? "?" : this.link(n);
    return [
      element("h2", {}, "An edge that joined nothing"),
      element("p", { class: "path" }, `${e.code} ${stop?.slug || ""}`),
      this.facts([["From", end(e.from)], ["To", end(e.to)]]),
      element("div", { class: "why" }, element("p", {}, ...spoken(e.path?.length && stop ? stop.about : e.reason + ".")), element("p", { class: "cure" }, stop?.cure || "")),
      ...this.list("The way outside that would close a circle", (e.path || []).map(n => [this.link(n), " ", element("small", {}, this.model.cluster(n) === null ? `${this.model.op(n)}, ${this.model.reason(n)?.slug || "outside"}` : this.model.clusters[this.model.cluster(n)].name)])),
    ];
  }
  cluster(i) {
    const c = this.model.clusters[i], model = this.model;
    const code = c.code !== null;
    return [
      element("h2", {}, element("span", { class: `key k${i % 8}` }), c.name),
      this.facts([
        ["Nodes", `${grouped(c.nodes)}, ${grouped(c.effective)} without constants`],
        ["FLOPs", operations(c.flops) + (c.unknown_flops ? `, ${grouped(c.unknown_flops)} nodes not counted` : "")],
        ["Left out", c.left_out ? `${grouped(c.left_out)} node${c.left_out === 1 ? "" : "s"} that no result needs` : ""],
        ["Device", element("span", { title: c.device }, c.device.replace(/^.*device:/, ""))],
      ]),
      c.refused.length > 0 && element("div", { class: "why" }, element("p", {}, element("b", {}, "Not compiled alone")), ...c.refused.slice(0, 8).flatMap(r => [
        element("p", {}, element("span", { class: "code" }, `${r.code} ${r.slug} `), r.node === null ? "" : this.link(r.node)),
        element("p", {}, ...spoken(r.text)), r.help && element("p", { class: "cure" }, r.help)]).filter(Boolean)),
      element("div", { class: "acts" },
        element("button", { type: "button", onclick: () => this.app.showCluster(i) }, "Show it"),
        code && element("button", { type: "button", onclick: () => this.app.openCode(i) }, "Code")),
      ...this.stops(e => (e.from !== null && model.cluster(e.from) === i) || (e.to !== null && model.cluster(e.to) === i)),
    ];
  }
  group(g) {
    const scene = this.app.view.scene(), group = scene.groups[g], told = scene.told(g), ops = new Map(), outside = new Map();
    if (group.cluster !== undefined) return this.cluster(group.cluster);
    for (let at = group.from; at < group.to; at++) {
      const n = scene.order[at];
      ops.set(this.model.op(n), (ops.get(this.model.op(n)) || 0) + 1);
      const reason = this.model.reason(n);
      if (reason) outside.set(reason.slug, { n, count: (outside.get(reason.slug)?.count || 0) + 1 });
    }
    const most = map => [...map].sort((a, b) => b[1] - a[1]).slice(0, 12);
    return [
      element("h2", {}, group.label),
      element("p", { class: "path" }, group.key),
      this.facts([
        ["Nodes", grouped(told.nodes)],
        ["In clusters", `${grouped(told.clustered)} (${(100 * told.clustered / told.nodes).toFixed(0)} %)`],
        ["FLOPs", operations(told.flops)],
      ]),
      element("div", { class: "acts" }, element("button", { type: "button", onclick: () => { this.app.view.toggle(g); this.show({ group: g }); } }, group.open ? "Close" : "Open")),
      ...this.list("In clusters", told.by.map(([i, count]) => [this.clusterLink(i), " ", element("small", {}, `${grouped(count)} nodes`)])),
      ...this.list("Outside", [...outside].map(([slug, { n, count }]) => [this.link(n, slug), " ", element("small", {}, `${grouped(count)} nodes`)])),
      ...this.list("Ops", most(ops).map(([op, count]) => [op, " ", element("small", {}, grouped(count))])),
    ];
  }
}
