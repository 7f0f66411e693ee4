// What is drawn: groups in groups, each laid out when it is opened.

const HEAD = 26, PAD = 16, LEAF_HEIGHT = 36, GROUP_HEIGHT = 52;
/** Groups of more leaves are cut into parts. */
const MOST_LEAVES = 260;
/** Scopes nested deeper than this are drawn as one. */
const MOST_SCOPES = 40;
/** Groups of more groups too: they would be a picture that no one reads. */
const MOST_GROUPS = 1000;
/** What is open at first has about this many items. */
const FIRST_ITEMS = 40;

/** As wide as its two lines ask for. */
const leafWidth = (label, op) => Math.min(200, Math.max(60, letters.width(label, 12, 500) + 20, letters.width(op, 10) + 20));

/** A long list in stretches, each with where it begins. */
function parts(all) {
  const size = Math.ceil(all.length / Math.min(MOST_LEAVES, Math.ceil(all.length / (MOST_LEAVES / 2))));
  const made = [];
  for (let i = 0; i < all.length; i += size) made.push([all.slice(i, i + size), i]);
  return made;
}

class Scene {
  /** `grouping` is "scope", "cluster" or "flat"; `only` restricts the nodes. */
  constructor(model, grouping, only = null) {
    this.model = model;
    this.grouping = grouping;
    this.groups = [{ id: 0, parent: -1, depth: 0, label: "", key: "", open: true, groups: [], leaves: [], from: 0, to: 0 }];
    this.owner = new Int32Array(model.count).fill(-1);
    this.host = new Int32Array(model.count).fill(-1);
    this.extras = new Map();
    const nodes = only || Array.from({ length: model.count }, (_, n) => n);
    if (grouping === "flat") this.addAll(0, nodes);
    else if (grouping === "cluster") this.byCluster(nodes);
    else { this.embed(nodes); this.byScope(0, nodes, 0); }
    this.finish();
  }
  /** Constants with one reader are drawn at it. */
  embed(nodes) {
    const model = this.model;
    for (const n of nodes) {
      if (!model.isConstant(n) || model.firstUser[n + 1] - model.firstUser[n] !== 1) continue;
      const user = model.users[model.firstUser[n]];
      this.host[n] = user;
      if (!this.extras.has(user)) this.extras.set(user, []);
      this.extras.get(user).push(n);
    }
  }
  group(parent, label, key, more = {}) {
    const id = this.groups.length;
    this.groups.push({ id, parent, depth: this.groups[parent].depth + 1, label, key, open: false, groups: [], leaves: [], from: 0, to: 0, ...more });
    this.groups[parent].groups.push(id);
    return id;
  }
  addAll(group, nodes) {
    for (const n of nodes) { this.owner[n] = group; this.groups[group].leaves.push(n); }
  }
  /** Groups by the parts of names, below `top`. */
  byScope(top, nodes) {
    const known = new Map();
    const prefix = this.groups[top].key;
    for (const n of nodes) {
      if (this.host[n] >= 0) continue;
      const name = this.model.names[n];
      const end = name.lastIndexOf("/");
      this.addAll(end <= 0 ? top : this.scope(top, prefix, name.slice(0, end), known), [n]);
    }
    this.simplify(top);
  }
  /** The group of a scope, made with those above it. */
  scope(top, prefix, path, known) {
    const found = known.get(path);
    if (found !== undefined) return found;
    // Names may have any number of parts: no recursion.
    let at = top, start = 0;
    while (start <= path.length && (at === top || this.groups[at].depth - this.groups[top].depth < MOST_SCOPES)) {
      let end = path.indexOf("/", start);
      if (end < 0) end = path.length;
      const part = path.slice(0, end);
      let next = known.get(part);
      if (next === undefined) {
        next = end > start ? this.group(at, path.slice(start, end), prefix + part) : at;
        known.set(part, next);
      }
      at = next;
      start = end + 1;
    }
    return at;
  }
  /** A group that only holds one group becomes one with it, and large heaps of leaves are cut. */
  simplify(top) {
    for (let id = this.groups.length - 1; id > top; id--) {
      const group = this.groups[id];
      if (group.gone || group.leaves.length || group.groups.length !== 1) continue;
      const child = this.groups[group.groups[0]];
      group.label += "/" + child.label;
      group.key = child.key;
      group.leaves = child.leaves;
      group.groups = child.groups;
      for (const n of group.leaves) this.owner[n] = id;
      for (const g of group.groups) this.groups[g].parent = id;
      child.gone = true;
    }
    for (let id = this.groups.length - 1; id >= top; id--) {
      const group = this.groups[id];
      if (group.gone) continue;
      if (group.groups.length > MOST_GROUPS) {
        for (const [part, from] of parts(group.groups.splice(0))) {
          const made = this.group(id, `${group.label || "scopes"} ${from + 1}–${from + part.length}`, `${group.key}##${from}`);
          this.groups[made].groups = part;
          for (const g of part) this.groups[g].parent = made;
        }
      }
      if (group.leaves.length > MOST_LEAVES) {
        for (const [part, from] of parts(group.leaves.splice(0))) {
          this.addAll(this.group(id, `${group.label || "nodes"} ${from + 1}–${from + part.length}`, `${group.key}#${from}`), part);
        }
      }
    }
  }
  /** A group for each cluster, and one for each stretch of nodes between clusters. */
  byCluster(nodes) {
    const model = this.model;
    this.embed(nodes.filter(n => model.cluster(n) === null));
    const inside = model.clusters.map(() => []), outside = [];
    for (const n of nodes) {
      if (this.host[n] >= 0) continue;
      const cluster = model.cluster(n);
      if (cluster === null) outside.push(n); else inside[cluster].push(n);
    }
    inside.forEach((list, i) => {
      if (list.length) this.heap(this.group(0, model.clusters[i].name, `cluster:${i}`, { cluster: i }), list);
    });
    for (const list of stretches(model, outside)) {
      if (list.length === 1) { this.addAll(0, list); continue; }
      this.heap(this.group(0, "outside", `outside:${model.names[list[0]]}`, { outside: true }), list);
    }
  }
  heap(group, list) {
    if (list.length > 120) this.byScope(group, list);
    else this.addAll(group, list);
  }
  /** Depths, the nodes of each group as a range of one list, and what is open at first. */
  finish() {
    this.order = [];
    const stack = [[0, 0]];
    this.groups[0].from = 0;
    while (stack.length) {
      const top = stack[stack.length - 1], group = this.groups[top[0]];
      if (top[1] === 0) {
        group.depth = group.parent < 0 ? 0 : this.groups[group.parent].depth + 1;
        group.from = this.order.length;
        for (const n of group.leaves) {
          this.order.push(n);
          for (const extra of this.extras.get(n) || []) this.order.push(extra);
        }
      }
      if (top[1] < group.groups.length) { stack.push([group.groups[top[1]++], 0]); continue; }
      group.to = this.order.length;
      stack.pop();
    }
    for (const [user, extras] of this.extras) for (const n of extras) this.owner[n] = this.owner[user];
    // A whole level is opened, or only the largest of its groups; that may be large where there would be next to nothing to see.
    const inside = g => this.groups[g].groups.length + this.groups[g].leaves.length;
    let shown = inside(0), level = this.groups[0].groups;
    while (level.length) {
      const many = level.reduce((sum, g) => sum + inside(g), 0);
      if (shown + many > FIRST_ITEMS) {
        const largest = level.reduce((a, b) => this.groups[b].to - this.groups[b].from > this.groups[a].to - this.groups[a].from ? b : a);
        const most = shown <= 12 ? 1000 : FIRST_ITEMS;
        level = shown + inside(largest) <= most ? [largest] : [];
      }
      for (const g of level) { this.groups[g].open = true; shown += inside(g); }
      level = level.flatMap(g => this.groups[g].groups);
    }
  }
  /** The group on the way from n up to the root that stands directly in `group`, or -1 where n itself does; -2: not in it. */
  childOf(group, n) {
    let at = this.owner[n], last = -1;
    while (at >= 0 && at !== group) { last = at; at = this.groups[at].parent; }
    return at < 0 ? -2 : last;
  }
  /** What is drawn for node n: {node} or the closed {group} that hides it; null where it is in neither. */
  shown(n) {
    let at = this.owner[n], closed = -1;
    if (at < 0) return null;
    while (at >= 0) { if (!this.groups[at].open) closed = at; at = this.groups[at].parent; }
    return closed >= 0 ? { group: closed } : { node: this.host[n] >= 0 ? this.host[n] : n };
  }
  /** Opens all that hides n. */
  reveal(n) {
    for (let at = this.owner[n]; at >= 0; at = this.groups[at].parent) this.setOpen(at, true);
  }
  setOpen(id, open) {
    const group = this.groups[id];
    if (group.open === open || id === 0) return;
    group.open = open;
    for (let at = id; at >= 0; at = this.groups[at].parent) this.groups[at].layout = null;
  }
  /** The layout of the root with that of all open groups below it. */
  layout() {
    const open = [0], all = [];
    while (open.length) {
      const id = open.pop();
      all.push(id);
      for (const g of this.groups[id].groups) if (this.groups[g].open && !this.groups[g].layout) open.push(g);
    }
    for (const id of all.reverse()) if (!this.groups[id].layout) this.layoutOf(id);
    return this.groups[0].layout;
  }
  layoutOf(id) {
    const group = this.groups[id], model = this.model;
    const items = [], groupItem = new Map(), leafItem = new Map();
    for (const g of group.groups) { groupItem.set(g, items.length); items.push(this.groupBox(g)); }
    for (const n of group.leaves) {
      leafItem.set(n, items.length);
      const label = model.shortName(n);
      items.push({ node: n, label, w: leafWidth(label, model.op(n)), h: LEAF_HEIGHT + (this.extras.has(n) ? 8 : 0), x: 0, y: 0 });
    }
    const itemOf = n => {
      if (this.host[n] >= 0) n = this.host[n];
      const child = this.childOf(id, n);
      return child >= 0 ? groupItem.get(child) : child === -1 ? leafItem.get(n) : undefined;
    };
    const counts = new Map();
    for (let at = group.from; at < group.to; at++) {
      const n = this.order[at], b = itemOf(n);
      if (b === undefined) continue;
      const add = (m, data) => {
        if (this.owner[m] < 0) return;
        const a = itemOf(m);
        if (a === undefined || a === b) return;
        const key = a * items.length + b, known = counts.get(key);
        if (known) { known.count++; known.data ||= data; } else counts.set(key, { count: 1, data });
      };
      const inputs = model.data.nodes.inputs[n];
      for (let i = 0; i < inputs.length; i += 2) add(inputs[i], true);
      // What orders constants says nothing of the data's way.
      if (!model.isConstant(n)) for (const m of model.data.nodes.controls[n]) if (!model.isConstant(m)) add(m, false);
    }
    const edges = [...counts].map(([key, { count, data }]) => ({ a: Math.floor(key / items.length), b: key % items.length, count, control: !data }));
    const size = layered(items, edges);
    group.layout = { items, edges, w: size.w, h: size.h };
  }
  groupBox(g) {
    const group = this.groups[g];
    if (group.open && group.layout) {
      return { group: g, label: group.label, w: Math.max(group.layout.w + 2 * PAD, letters.width(group.label, 12, 600) + 50), h: group.layout.h + 2 * PAD + HEAD, x: 0, y: 0 };
    }
    return { group: g, label: group.label, w: Math.min(260, Math.max(110, letters.width(group.label, 12, 600) + 24, letters.width(this.line(g), 10.5) + 24)), h: GROUP_HEIGHT, x: 0, y: 0 };
  }
  /** What a closed group says of itself. */
  line(g) {
    const told = this.told(g);
    return `${grouped(told.nodes)} node${told.nodes === 1 ? "" : "s"}` + (told.flops ? ` · ${operations(told.flops)}` : "");
  }
  /** The sum of a figure of nodes over a group. */
  sum(id, figure) {
    let sum = 0;
    for (let at = this.groups[id].from; at < this.groups[id].to; at++) sum += figure(this.order[at]);
    return sum;
  }
  /** Numbers of a group: nodes, those in clusters, work, and nodes by cluster, the most first. */
  told(id) {
    const group = this.groups[id];
    if (group.told) return group.told;
    const by = new Map();
    let clustered = 0, flops = 0, blocking = 0;
    for (let at = group.from; at < group.to; at++) {
      const n = this.order[at], cluster = this.model.cluster(n);
      flops += this.model.flops(n) || 0;
      blocking += this.model.blocking[n];
      if (cluster === null) continue;
      clustered++;
      by.set(cluster, (by.get(cluster) || 0) + 1);
    }
    group.told = { nodes: group.to - group.from, clustered, flops, blocking, by: [...by].sort((a, b) => b[1] - a[1]) };
    return group.told;
  }
}

/** Nodes outside of clusters in stretches: joined by edges, with equally many clusters before them; so no cluster stands
 *  between two nodes of one stretch. */
function stretches(model, outside) {
  const count = model.count, unit = new Int32Array(count), clusters = model.clusters.length;
  for (let n = 0; n < count; n++) { const c = model.cluster(n); unit[n] = c === null ? clusters + n : c; }
  const level = new Int32Array(clusters + count), missing = new Uint32Array(clusters + count);
  const members = model.clusters.map(() => []);
  for (let n = 0; n < count; n++) {
    if (unit[n] < clusters) members[unit[n]].push(n);
    for (const m of model.inputs(n)) if (unit[m] !== unit[n]) missing[unit[n]]++;
  }
  const ready = [];
  for (let u = 0; u < clusters; u++) if (members[u].length && !missing[u]) ready.push(u);
  // Constants that are drawn at their readers count too.
  for (let n = 0; n < count; n++) if (unit[n] >= clusters && !missing[unit[n]]) ready.push(unit[n]);
  for (let at = 0; at < ready.length; at++) {
    const u = ready[at];
    for (const n of u < clusters ? members[u] : [u - clusters]) for (const user of model.usersOf(n)) {
      const v = unit[user];
      if (v === u) continue;
      level[v] = Math.max(level[v], level[u] + (u < clusters ? 1 : 0));
      // An edge is counted once a pair of nodes, as above.
      if (--missing[v] === 0) ready.push(v);
    }
  }
  // What reads nothing belongs to its first reader.
  for (const n of outside) if (!model.inputs(n).length) {
    const users = model.usersOf(n);
    if (users.length) level[unit[n]] = users.reduce((least, user) => Math.min(least, level[unit[user]]), Infinity);
  }
  const parent = new Map(outside.map(n => [n, n]));
  const root = n => { while (parent.get(n) !== n) { parent.set(n, parent.get(parent.get(n))); n = parent.get(n); } return n; };
  for (const n of outside) for (const m of model.inputs(n)) {
    if (parent.has(m) && level[unit[m]] === level[unit[n]]) parent.set(root(m), root(n));
  }
  const lists = new Map();
  for (const n of outside) {
    const r = root(n);
    if (!lists.has(r)) lists.set(r, []);
    lists.get(r).push(n);
  }
  return [...lists.values()];
}
