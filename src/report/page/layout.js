// Layered layout of one group: what is computed first stands above. After Sugiyama: cycles are cut, layers assigned, long
// edges get a bend in each layer that they cross, layers are sorted by the places of their neighbours, and x coordinates
// minimise the squared distance to the neighbours' under the order (isotonic regression).

const LAYER_GAP = 34, ITEM_GAP = 18, BEND_GAP = 8;
const MOST_BENDS = 20000, LONGEST_BENT = 400;

/**
 * Places items; `items` have w and h and get x and y (their left upper corner); `edges` are {a, b} in numbers of items and get
 * `points`, from the bottom of a to the top of b. Returns {w, h}.
 */
function layered(items, edges) {
  const count = items.length;
  const joined = new Uint8Array(count);
  for (const e of edges) joined[e.a] = joined[e.b] = 1;
  const lone = [];
  for (let i = 0; i < count; i++) if (!joined[i]) lone.push(i);
  const size = joined.includes(1) ? layeredJoined(items, edges, joined) : { w: 0, h: 0 };
  return gridOf(items, lone, size);
}

/** Puts the items without edges in rows below the others. */
function gridOf(items, lone, size) {
  if (!lone.length) return size;
  const area = lone.reduce((sum, i) => sum + (items[i].w + ITEM_GAP) * (items[i].h + ITEM_GAP), 0);
  const width = lone.reduce((most, i) => Math.max(most, items[i].w), Math.max(size.w, Math.sqrt(area * 1.8)));
  let x = 0, y = size.h ? size.h + LAYER_GAP : 0, row = 0, widest = size.w;
  for (const i of lone) {
    const item = items[i];
    if (x > 0 && x + item.w > width) { x = 0; y += row + ITEM_GAP; row = 0; }
    item.x = x; item.y = y;
    x += item.w + ITEM_GAP;
    row = Math.max(row, item.h);
    widest = Math.max(widest, x - ITEM_GAP);
  }
  return { w: widest, h: y + row };
}

function layeredJoined(items, edges, joined) {
  const count = items.length;
  const out = Array.from({ length: count }, () => []);
  edges.forEach((e, i) => { if (e.a !== e.b) out[e.a].push(i); });
  const back = backEdges(edges, out, count);
  const ends = edges.map((e, i) => back[i] ? [e.b, e.a] : [e.a, e.b]);
  const layer = layersOf(ends, count);
  // Boxes and bends, each in its layer.
  const boxes = [];
  for (let i = 0; i < count; i++) if (joined[i]) boxes.push({ item: i, layer: layer[i], w: items[i].w, up: [], down: [] });
  const boxOf = new Int32Array(count).fill(-1);
  boxes.forEach((box, b) => { boxOf[box.item] = b; });
  const chains = [];
  let bends = 0;
  ends.forEach(([a, b], i) => {
    if (a === b) { chains.push(null); return; }
    const span = layer[b] - layer[a];
    const chain = [boxOf[a]];
    if (span > 1 && span <= LONGEST_BENT && bends + span <= MOST_BENDS) {
      for (let l = layer[a] + 1; l < layer[b]; l++) {
        chain.push(boxes.length);
        boxes.push({ item: -1, layer: l, w: 2, up: [], down: [] });
        bends++;
      }
    }
    chain.push(boxOf[b]);
    const direct = span === 1 || chain.length > 2;
    for (let k = 1; k < chain.length && direct; k++) {
      boxes[chain[k - 1]].down.push(chain[k]);
      boxes[chain[k]].up.push(chain[k - 1]);
    }
    chains.push(chain);
  });
  const layers = [];
  boxes.forEach((box, b) => { (layers[box.layer] ||= []).push(b); });
  for (let l = 0; l < layers.length; l++) layers[l] ||= [];
  const rounds = boxes.length > 6000 ? 3 : 10;
  sortLayers(boxes, layers, rounds);
  placeLayers(boxes, layers, rounds);
  let left = Infinity, right = -Infinity;
  for (const box of boxes) { left = Math.min(left, box.x - box.w / 2); right = Math.max(right, box.x + box.w / 2); }
  const tops = [], heights = [];
  let y = 0;
  layers.forEach((all, l) => {
    heights[l] = all.reduce((most, b) => boxes[b].item < 0 ? most : Math.max(most, items[boxes[b].item].h), 0);
    tops[l] = y;
    y += heights[l] + LAYER_GAP;
  });
  for (const box of boxes) {
    box.x -= left;
    if (box.item < 0) continue;
    const item = items[box.item];
    item.x = box.x - item.w / 2;
    item.y = tops[box.layer] + (heights[box.layer] - item.h) / 2;
    item.layer = box.layer;
  }
  edges.forEach((e, i) => {
    const chain = chains[i];
    e.points = [];
    if (!chain) return;
    const points = chain.map(b => {
      const box = boxes[b];
      return { x: box.x, top: tops[box.layer], bottom: tops[box.layer] + heights[box.layer], item: box.item };
    });
    const first = items[points[0].item], last = items[points[points.length - 1].item];
    e.points.push([points[0].x, first.y + first.h]);
    for (const p of points.slice(1, -1)) e.points.push([p.x, p.top], [p.x, p.bottom]);
    e.points.push([points[points.length - 1].x, last.y]);
    if (back[i]) { e.points.reverse(); e.back = true; }
  });
  return { w: right - left, h: Math.max(0, y - LAYER_GAP) };
}

/** The edges that close a cycle, by a walk in depth without recursion. */
function backEdges(edges, out, count) {
  const state = new Uint8Array(count), back = new Uint8Array(edges.length);
  for (let start = 0; start < count; start++) {
    if (state[start]) continue;
    const stack = [[start, 0]];
    state[start] = 1;
    while (stack.length) {
      const top = stack[stack.length - 1];
      if (top[1] >= out[top[0]].length) { state[top[0]] = 2; stack.pop(); continue; }
      const i = out[top[0]][top[1]++], to = edges[i].b;
      if (state[to] === 1) back[i] = 1;
      else if (!state[to]) { state[to] = 1; stack.push([to, 0]); }
    }
  }
  return back;
}

/** The longest way from the start; what nothing leads to stands just above its first reader. */
function layersOf(ends, count) {
  const missing = new Uint32Array(count), next = Array.from({ length: count }, () => []);
  for (const [a, b] of ends) if (a !== b) { missing[b]++; next[a].push(b); }
  const starts = [];
  for (let i = 0; i < count; i++) if (!missing[i]) starts.push(i);
  const layer = new Int32Array(count), order = starts.slice();
  for (let at = 0; at < order.length; at++) {
    for (const b of next[order[at]]) {
      layer[b] = Math.max(layer[b], layer[order[at]] + 1);
      if (--missing[b] === 0) order.push(b);
    }
  }
  for (const i of starts) if (next[i].length) layer[i] = Math.max(0, next[i].reduce((least, b) => Math.min(least, layer[b]), Infinity) - 1);
  return layer;
}

/** Orders each layer by the mean place of the neighbours, downwards and upwards in turn. */
function sortLayers(boxes, layers, rounds) {
  const place = () => layers.forEach(all => all.forEach((b, i) => { boxes[b].at = i; }));
  place();
  for (let round = 0; round < rounds; round++) {
    const down = round % 2 === 0;
    for (let k = 1; k < layers.length; k++) {
      const all = layers[down ? k : layers.length - 1 - k];
      for (const b of all) {
        const near = down ? boxes[b].up : boxes[b].down;
        boxes[b].want = near.length ? near.reduce((sum, n) => sum + boxes[n].at, 0) / near.length : boxes[b].at;
      }
      all.sort((a, b) => boxes[a].want - boxes[b].want || boxes[a].at - boxes[b].at);
      all.forEach((b, i) => { boxes[b].at = i; });
    }
  }
}

/** x coordinates: near to the neighbours, in order, apart. */
function placeLayers(boxes, layers, rounds) {
  for (const all of layers) {
    let x = 0;
    for (const b of all) { boxes[b].x = x + boxes[b].w / 2; x += boxes[b].w + gapOf(boxes[b]); }
    for (const b of all) boxes[b].x -= x / 2;
  }
  for (let round = 0; round < rounds; round++) {
    const way = round % 3;
    const order = way === 1 ? [...layers].reverse() : layers;
    for (const all of order) {
      for (const b of all) {
        const box = boxes[b];
        const near = way === 0 ? box.up : way === 1 ? box.down : box.up.concat(box.down);
        let sum = 0, weight = 0;
        for (const n of near) {
          // Boxes keep in line with boxes and bends with bends; where a long edge ends counts little.
          const w = (boxes[n].item < 0) === (box.item < 0) ? 1 : 0.06;
          sum += w * boxes[n].x;
          weight += w;
        }
        box.want = weight ? sum / weight : box.x;
        // In a conflict it is the bend that gives way.
        box.weight = near.length ? (box.item < 0 ? 0.06 : 2) : 0.05;
      }
      apart(boxes, all);
    }
  }
}

const gapOf = box => box.item < 0 ? BEND_GAP : ITEM_GAP;

/** The places nearest to what is wanted at which no two boxes of a row meet. */
function apart(boxes, row) {
  const blocks = [];
  let offset = 0;
  row.forEach((b, i) => {
    const box = boxes[b];
    if (i > 0) {
      const before = boxes[row[i - 1]];
      offset += (before.w + box.w) / 2 + Math.max(gapOf(before), gapOf(box));
    }
    box.offset = offset;
    let block = { sum: (box.want - offset) * box.weight, weight: box.weight, from: i };
    while (blocks.length && blocks[blocks.length - 1].sum / blocks[blocks.length - 1].weight > block.sum / block.weight) {
      const last = blocks.pop();
      block = { sum: last.sum + block.sum, weight: last.weight + block.weight, from: last.from };
    }
    blocks.push(block);
  });
  blocks.forEach((block, k) => {
    const end = k + 1 < blocks.length ? blocks[k + 1].from : row.length;
    for (let i = block.from; i < end; i++) boxes[row[i]].x = block.sum / block.weight + boxes[row[i]].offset;
  });
}
