// The memory plan over time: above how much of the workspace lives, below where each buffer lies (launch to the right,
// offset upwards).

const SVG = "http://www.w3.org/2000/svg";

function drawn(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function drawMemory(part, index, lit, onChoose) {
  const code = index.code, launches = code.launches.length, whole = code.workspace_bytes;
  const blocks = code.buffers.map((b, i) => ({ ...b, i })).filter(b => b.place === "workspace" && b.first !== null);
  const live = new Float64Array(launches + 1);
  for (const b of blocks) { live[b.first] += b.bytes; live[b.last + 1] -= b.bytes; }
  let peak = 0, peakAt = 0;
  for (let t = 0, sum = 0; t < launches; t++) { sum += live[t]; live[t] = sum; if (sum > peak) { peak = sum; peakAt = t; } }
  part.note.textContent = blocks.length ? `${inBytes(whole)} workspace, at most ${inBytes(peak)} alive, at launch ${peakAt} of ${launches}` : "";
  if (!blocks.length) { part.body.replaceChildren(element("p", { class: "empty" }, "No workspace: all buffers are the caller's, or constants.")); return; }
  const W = Math.max(240, part.body.clientWidth), H = Math.max(150, part.body.clientHeight - 2), left = 62, right = 10, top = 8, split = Math.round(H * 0.28), bottom = 22;
  const x = t => left + (W - left - right) * t / launches;
  const y = at => H - bottom - (H - bottom - split - 10) * at / whole;
  const up = n => split - (split - top) * n / (peak || 1);
  let path = `M${x(0)} ${split}`;
  for (let t = 0; t < launches; t++) path += `L${round(x(t))} ${round(up(live[t]))}L${round(x(t + 1))} ${round(up(live[t]))}`;
  const rows = blocks.map(b => {
    const isLit = !!lit && lit.buffers.has(b.i), [kernel] = index.bufferKernels[b.i];
    const label = `b${b.i} ${b.shape}, ${inBytes(b.bytes)} at ${b.at}, launches ${b.first} to ${b.last}` + (kernel !== undefined ? `, first in k${kernel} ${code.kernels[kernel].label}` : "");
    const rect = drawn("rect", { class: `block c${b.i % 8}${isLit ? " lit" : ""}`, x: round(x(b.first)), y: round(y(b.at + b.bytes)), width: Math.max(1.5, round(x(b.last + 1) - x(b.first))), height: Math.max(1.5, round(y(b.at) - y(b.at + b.bytes))), "fill-opacity": lit && !isLit ? 0.35 : 0.9 }, drawn("title", {}, label));
    rect.addEventListener("click", () => onChoose({ buffer: b.i }));
    return rect;
  });
  part.body.replaceChildren(drawn("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": part.note.textContent },
    drawn("path", { class: "live", d: `${path}L${x(launches)} ${split}Z` }),
    drawn("line", { class: "peak", x1: x(peakAt + 0.5), x2: x(peakAt + 0.5), y1: top, y2: H - bottom }),
    drawn("line", { class: "axis", x1: left, x2: W - right, y1: H - bottom, y2: H - bottom }),
    drawn("text", { x: 4, y: top + 10 }, inBytes(peak)), drawn("text", { x: 4, y: split }, "alive, 0"),
    drawn("text", { x: 4, y: y(whole) + 4 }, inBytes(whole)), drawn("text", { x: 4, y: H - bottom }, "offset"),
    drawn("text", { x: left, y: H - 6 }, "launch 0"), drawn("text", { x: W - right, y: H - 6, "text-anchor": "end" }, String(launches)),
    ...rows));
}
