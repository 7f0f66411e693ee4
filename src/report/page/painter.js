// One way to draw for two surfaces: the canvas, and a picture in SVG.

class CanvasPainter {
  constructor(context, font) { this.c = context; this.font = font; }
  rect(x, y, w, h, { r = 0, fill, stroke, width = 1, dash } = {}) {
    const c = this.c;
    c.beginPath();
    if (r) c.roundRect(x, y, w, h, r); else c.rect(x, y, w, h);
    if (fill) { c.fillStyle = fill; c.fill(); }
    if (stroke) { c.strokeStyle = stroke; c.lineWidth = width; c.setLineDash(dash || []); c.stroke(); if (dash) c.setLineDash([]); }
  }
  circle(x, y, r, { fill, stroke, width = 1 } = {}) {
    const c = this.c;
    c.beginPath();
    c.arc(x, y, r, 0, 2 * Math.PI);
    if (fill) { c.fillStyle = fill; c.fill(); }
    if (stroke) { c.strokeStyle = stroke; c.lineWidth = width; c.stroke(); }
  }
  /** A smooth line through points, downwards at each, with an arrow at its end. */
  line(points, { stroke, width = 1, dash, arrow = 0 }) {
    const c = this.c;
    c.beginPath();
    c.moveTo(points[0][0], points[0][1]);
    for (const [ax, ay, bx, by, x, y] of bends(points)) c.bezierCurveTo(ax, ay, bx, by, x, y);
    c.strokeStyle = stroke;
    c.lineWidth = width;
    c.setLineDash(dash || []);
    c.stroke();
    if (dash) c.setLineDash([]);
    if (arrow) {
      const [x, y] = points[points.length - 1];
      const s = points[points.length - 2][1] <= y ? 1 : -1;
      c.beginPath();
      c.moveTo(x, y);
      c.lineTo(x - arrow * 0.6, y - s * arrow);
      c.lineTo(x + arrow * 0.6, y - s * arrow);
      c.fillStyle = stroke;
      c.fill();
    }
  }
  text(x, y, text, { size = 12, fill, weight = 400, align = "left", most } = {}) {
    const c = this.c;
    c.font = `${weight} ${size}px ${this.font}`;
    c.fillStyle = fill;
    c.textAlign = align;
    c.textBaseline = "middle";
    c.fillText(most ? shortened(text, most, size, weight) : text, x, y);
  }
}

class SvgPainter {
  constructor(font) { this.parts = []; this.font = font; }
  style({ fill, stroke, width = 1, dash }) {
    return `fill="${fill || "none"}"` + (stroke ? ` stroke="${stroke}" stroke-width="${width}"` : "") + (dash ? ` stroke-dasharray="${dash.join(" ")}"` : "");
  }
  rect(x, y, w, h, style = {}) {
    this.parts.push(`<rect x="${round(x)}" y="${round(y)}" width="${round(w)}" height="${round(h)}" rx="${style.r || 0}" ${this.style(style)}/>`);
  }
  circle(x, y, r, style = {}) { this.parts.push(`<circle cx="${round(x)}" cy="${round(y)}" r="${r}" ${this.style(style)}/>`); }
  line(points, { stroke, width = 1, dash, arrow = 0 }) {
    const path = `M${round(points[0][0])} ${round(points[0][1])}` + bends(points).map(b => "C" + b.map(round).join(" ")).join("");
    this.parts.push(`<path d="${path}" ${this.style({ stroke, width, dash })}/>`);
    if (arrow) {
      const [x, y] = points[points.length - 1];
      const s = points[points.length - 2][1] <= y ? 1 : -1;
      this.parts.push(`<path d="M${round(x)} ${round(y)}l${-arrow * 0.6} ${-s * arrow}h${arrow * 1.2}z" fill="${stroke}"/>`);
    }
  }
  text(x, y, text, { size = 12, fill, weight = 400, align = "left", most } = {}) {
    const anchor = { left: "start", center: "middle", right: "end" }[align];
    const shown = escapedXml(most ? shortened(text, most, size, weight) : text);
    this.parts.push(`<text x="${round(x)}" y="${round(y)}" font-size="${size}" font-weight="${weight}" fill="${fill}" text-anchor="${anchor}" dominant-baseline="central">${shown}</text>`);
  }
  picture(x, y, w, h, background) {
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${round(x)} ${round(y)} ${round(w)} ${round(h)}" width="${round(w)}" height="${round(h)}" font-family="${escapedXml(this.font)}"><rect x="${round(x)}" y="${round(y)}" width="${round(w)}" height="${round(h)}" fill="${background}"/>${this.parts.join("")}</svg>`;
  }
}

const round = n => Math.round(n * 10) / 10;

/** Curves between points: straight down at each of them. */
function bends(points) {
  const out = [];
  for (let i = 1; i < points.length; i++) {
    const [ax, ay] = points[i - 1], [bx, by] = points[i];
    const middle = (ay + by) / 2;
    if (by < ay && points.length === 2) { const reach = 40; out.push([ax + reach, ay + reach, bx + reach, by - reach, bx, by]); }
    else out.push([ax, middle, bx, middle, bx, by]);
  }
  return out;
}

/** Widths of letters at one pixel, by weight; measured once each. */
const letters = {
  known: new Map(),
  width(text, size, weight = 400) {
    let table = this.known.get(weight);
    if (!table) this.known.set(weight, table = new Map());
    let sum = 0;
    for (const c of text) {
      let w = table.get(c);
      if (w === undefined) {
        this.context ||= document.createElement("canvas").getContext("2d");
        this.context.font = `${weight} 100px ${theme.colours.sans}`;
        table.set(c, w = this.context.measureText(c).width / 100);
      }
      sum += w;
    }
    return sum * size;
  },
};

/** Text cut in the middle so that it fits. */
function shortened(text, most, size, weight) {
  if (letters.width(text, size, weight) <= most) return text;
  const all = [...text];
  let keep = Math.max(3, Math.floor(all.length * most / letters.width(text, size, weight)));
  const cut = () => all.slice(0, Math.ceil(keep * 0.55)).join("") + "…" + all.slice(all.length - Math.floor(keep * 0.45)).join("");
  while (keep > 3 && letters.width(cut(), size, weight) > most) keep--;
  return cut();
}

/** Text for XML; what XML has no form for is replaced. */
function escapedXml(text) {
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd")
    .replace(/[&<>"']/g, c => `&#${c.charCodeAt(0)};`);
}
