// Finding nodes: words of their name or op, all of which must be there; `op:`, `code:` and `cluster:` ask for one thing.

const MOST_FOUND = 60;

/** Nodes that fit `text`, at most `most`: those first whose last part begins with it, constants last. */
function findNodes(model, text, most = MOST_FOUND) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const tests = words.map(word => {
    const [, what, value] = word.match(/^(op|code|cluster):(.*)$/) || [];
    if (what === "op") return n => model.op(n).toLowerCase() === value;
    if (what === "code") return n => { const r = model.reason(n); return !!r && (r.code.toLowerCase() === value || r.slug.includes(value)); };
    if (what === "cluster") return n => model.cluster(n) !== null && (String(model.cluster(n)) === value || model.clusters[model.cluster(n)].name.toLowerCase() === value);
    return n => model.names[n].toLowerCase().includes(word) || model.op(n).toLowerCase().includes(word);
  });
  const first = words[0], exact = [], good = [], other = [], constants = [];
  for (let n = 0; n < model.count && good.length < most; n++) {
    if (!tests.every(test => test(n))) continue;
    const name = model.names[n].toLowerCase();
    const list = name === first ? exact : model.isConstant(n) ? constants : lastPart(name).startsWith(first) ? good : other;
    if (list.length < most) list.push(n);
  }
  return [...exact, ...good, ...other, ...constants].slice(0, most);
}

/** The box at the top of the page; `onChoose` gets the node. */
class Finder {
  constructor(model, onChoose) {
    this.model = model;
    this.onChoose = onChoose;
    this.input = byId("search");
    this.list = byId("found");
    this.at = 0;
    this.results = [];
    this.input.addEventListener("input", () => this.look());
    this.input.addEventListener("focus", () => this.look());
    this.input.addEventListener("blur", () => setTimeout(() => this.close(), 150));
    this.input.addEventListener("keydown", e => this.key(e));
  }
  /** Asks for a node for one purpose; the next choice goes to `then`. */
  ask(prompt, then) {
    this.then = then;
    this.prompt ??= this.input.placeholder;
    this.input.placeholder = prompt;
    this.input.value = "";
    this.input.focus();
  }
  look() {
    this.results = findNodes(this.model, this.input.value);
    this.at = 0;
    const text = this.input.value.trim(), word = text.split(/\s+/)[0];
    this.list.replaceChildren(...this.results.map((n, i) => {
      const name = this.model.names[n], cluster = this.model.cluster(n);
      const where = cluster === null ? this.model.reason(n)?.slug || "outside" : this.model.clusters[cluster].name;
      return element("li", { role: "option", id: `found-${i}`, onpointerdown: e => { e.preventDefault(); this.choose(i); } },
        element("span", {}, ...marked(lastPart(name), word), element("small", {}, ...marked(name, word))), element("span", {}, `${this.model.op(n)} · ${where}`));
    }));
    if (text && !this.results.length) this.list.append(element("li", { class: "none" }, "Nothing found"));
    this.list.hidden = !text;
    this.input.setAttribute("aria-expanded", String(!!text));
    this.mark();
  }
  mark() {
    [...this.list.children].forEach((li, i) => li.setAttribute("aria-selected", String(i === this.at && this.results.length > 0)));
    if (this.results.length) this.input.setAttribute("aria-activedescendant", `found-${this.at}`);
    this.list.children[this.at]?.scrollIntoView({ block: "nearest" });
  }
  key(e) {
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      e.preventDefault();
      const many = this.results.length;
      if (many) this.at = (this.at + (e.key === "ArrowDown" ? 1 : many - 1)) % many;
      this.mark();
    } else if (e.key === "Enter") { e.preventDefault(); this.choose(this.at); }
    else if (e.key === "Escape") { this.done(); this.close(); this.input.blur(); }
  }
  choose(i) {
    const n = this.results[i];
    if (n === undefined) return;
    const then = this.then;
    this.done();
    this.close();
    this.input.blur();
    (then || this.onChoose)(n);
  }
  done() { this.then = null; if (this.prompt) this.input.placeholder = this.prompt; }
  close() { this.list.hidden = true; this.input.setAttribute("aria-expanded", "false"); }
}

/** `text` with the first place of `part` marked. */
function marked(text, part) {
  const at = part ? text.toLowerCase().indexOf(part.toLowerCase()) : -1;
  return at < 0 ? [text] : [text.slice(0, at), element("mark", {}, text.slice(at, at + part.length)), text.slice(at + part.length)];
}
