// Light and dark, as the system is or as the reader chose; colours for the canvas come from the style.

const theme = {
  chosen: null,
  listeners: [],
  colours: {},
  start() {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    try { this.chosen = localStorage.getItem("tfaot-theme"); } catch { /* a page from a file may have no storage */ }
    dark.addEventListener("change", () => this.apply());
    this.apply();
    byId("theme").addEventListener("click", () => {
      this.chosen = this.isDark() ? "light" : "dark";
      try { localStorage.setItem("tfaot-theme", this.chosen); } catch { /* as above */ }
      this.apply();
    });
  },
  isDark() { return (this.chosen || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark"; },
  apply() {
    document.documentElement.dataset.theme = this.isDark() ? "dark" : "light";
    byId("theme").textContent = this.isDark() ? "Light" : "Dark";
    const style = getComputedStyle(document.documentElement);
    // `light-dark(a, b)` is only resolved where it is used.
    const colour = name => {
      const [, light, dark] = style.getPropertyValue("--" + name).match(/light-dark\((.*?),\s*(.*?)\)/) || [];
      return this.isDark() ? dark : light;
    };
    const names = ["bg", "panel", "raise", "line", "ink", "soft", "faint", "accent", "select", "select-soft", "warn", "rest", "node", "node-line", "group", "edge"];
    for (const name of names) this.colours[name] = colour(name);
    this.colours.clusters = Array.from({ length: 8 }, (_, i) => colour("c" + i));
    this.colours.sans = style.getPropertyValue("--sans").trim();
    for (const listener of this.listeners) listener();
  },
};

/** The colour between two `#rrggbb`, `part` of the way. */
function mixed(a, b, part) {
  const at = (text, i) => parseInt(text.slice(1 + 2 * i, 3 + 2 * i), 16);
  const digits = [0, 1, 2].map(i => Math.round(at(a, i) + (at(b, i) - at(a, i)) * part).toString(16).padStart(2, "0"));
  return "#" + digits.join("");
}
