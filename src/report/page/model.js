// The data: unpacked, with what is asked of it again and again worked out once.

/** Unpacks the block of data `id`; a promise of its JSON's text. */
async function unpacked(id) {
  const text = atob(document.getElementById(id).textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

/** A graph in columns, with users beside inputs. Nodes are numbers. */
class Model {
  constructor(data) {
    this.data = data;
    const nodes = data.nodes;
    this.count = nodes.name.length;
    this.names = nodes.name;
    this.clusters = data.clusters;
    this.wholes = data.models || [];
    this.flopsMost = 0;
    for (const f of nodes.flops) if (f > this.flopsMost) this.flopsMost = f;
    this.numbers = null;
    this.link();
    this.blocking = new Uint8Array(this.count);
    for (const blocker of data.blockers) if (blocker.blocks && blocker.op) for (const n of blocker.nodes) this.blocking[n] = 1;
  }
  /** Data edges as flat lists: those of node n are `from[first[n]] ..`, its users `to[firstUser[n]] ..`. */
  link() {
    const inputs = this.data.nodes.inputs, controls = this.data.nodes.controls, count = this.count;
    const users = new Uint32Array(count + 1);
    let total = 0;
    for (let n = 0; n < count; n++) {
      const list = inputs[n];
      for (let i = 0; i < list.length; i += 2) users[list[i] + 1]++;
      for (const c of controls[n]) users[c + 1]++;
      total += list.length / 2 + controls[n].length;
    }
    for (let n = 0; n < count; n++) users[n + 1] += users[n];
    this.firstUser = users;
    this.users = new Uint32Array(total);
    this.isControl = new Uint8Array(total);
    const next = users.slice();
    for (let n = 0; n < count; n++) {
      const list = inputs[n];
      for (let i = 0; i < list.length; i += 2) this.users[next[list[i]]++] = n;
      for (const c of controls[n]) { this.isControl[next[c]] = 1; this.users[next[c]++] = n; }
    }
  }
  /** The place of the code of a cluster, by its number, or of a function compiled whole, as `m0`; null where there is none. */
  codeOf(which) { return (typeof which === "string" ? this.wholes[which.slice(1)] : this.clusters[which])?.code ?? null; }
  name(n) { return this.names[n]; }
  shortName(n) { return lastPart(this.names[n]); }
  op(n) { return this.data.ops[this.data.nodes.op[n]]; }
  cluster(n) { return this.data.nodes.cluster[n]; }
  flops(n) { return this.data.nodes.flops[n]; }
  reason(n) { const r = this.data.nodes.reason[n]; return r === null ? null : this.data.reasons[r]; }
  types(n) { return this.data.nodes.outputs[n].map(t => this.data.types[t]); }
  attrs(n) { return this.data.attrs[this.data.nodes.attr[n]]; }
  device(n) { return this.data.devices[this.data.nodes.device[n]]; }
  /** Nodes that n reads, each once, controls behind data. */
  inputs(n) {
    const list = this.data.nodes.inputs[n], all = new Set();
    for (let i = 0; i < list.length; i += 2) all.add(list[i]);
    for (const c of this.data.nodes.controls[n]) all.add(c);
    return [...all];
  }
  /** Nodes that read n, each once. */
  usersOf(n) { return [...new Set(this.users.subarray(this.firstUser[n], this.firstUser[n + 1]))]; }
  isConstant(n) { return this.op(n) === "Const"; }
  /** The node of this name, or undefined. */
  find(name) {
    if (!this.numbers) this.numbers = new Map(this.names.map((name, n) => [name, n]));
    return this.numbers.get(name);
  }
  /** Nodes at most `distance` edges away from n, against and along the edges, at most `most`, near ones first. */
  around(n, distance, most) {
    const seen = new Set([n]);
    for (const next of [m => this.inputs(m), m => this.usersOf(m)]) {
      let front = [n];
      const mine = new Set(front);
      for (let step = 0; step < distance && seen.size < most; step++) {
        const then = [];
        for (const m of front) for (const other of next(m)) {
          if (mine.has(other) || seen.size >= most) continue;
          mine.add(other); seen.add(other); then.push(other);
        }
        front = then;
      }
    }
    return [...seen];
  }
  /** A shortest way along the edges from a to b, or null. */
  path(a, b) {
    const before = new Map([[a, a]]);
    let front = [a];
    while (front.length && !before.has(b)) {
      const then = [];
      for (const m of front) for (const user of this.usersOf(m)) {
        if (!before.has(user)) { before.set(user, m); then.push(user); }
      }
      front = then;
    }
    if (!before.has(b)) return null;
    const way = [b];
    while (way[0] !== a) way.unshift(before.get(way[0]));
    return way;
  }
}

/** The last part of a name. */
function lastPart(name) {
  const parts = name.split("/");
  for (let i = parts.length - 1; i >= 0; i--) if (parts[i]) return parts[i];
  return name;
}

/** 12345 as 12,345. */
const grouped = n => String(Math.round(n)).replace(/\B(?=(\d{3})+(?!\d))/g, ",");

/** A number with three digits and a unit. */
function scaled(n, step, units) {
  let at = 0;
  while (Math.abs(n) >= 999.5 && at + 1 < units.length) { n /= step; at++; }
  return `${n.toFixed(at === 0 || Math.abs(n) >= 99.95 ? 0 : Math.abs(n) >= 9.995 ? 1 : 2)} ${units[at]}`;
}
const operations = n => n === null ? "not known" : scaled(n, 1000, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"]);
/** Milliseconds, or microseconds where they are few. */
const inTime = ms => ms >= 0.1 ? `${ms.toFixed(3)} ms` : `${(ms * 1000).toFixed(2)} µs`;
const inBytes = n => scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);

/** An element with properties and children; text is text, never markup. */
function element(tag, properties, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(properties || {})) {
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key in made && !key.startsWith("aria")) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.filter(c => c !== null && c !== undefined && c !== false));
  return made;
}
/** Text in which what stands between backticks is code, as children of an element. */
const spoken = text => text.split("`").map((part, i) => i % 2 ? element("code", {}, part) : part);
const byId = id => document.getElementById(id);
