// Calls one model on files, as driver.c does: node driver.mjs MODEL.wasm FOLDER. What it knows of the model is in m_info()'s tables,
// with addresses of 32 bits.
import { readFileSync, writeFileSync } from "node:fs";

const [file, folder] = process.argv.slice(2);
const { exports: model } = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(file)), {});
const word = (at) => new DataView(model.memory.buffer).getUint32(at, true);
const text = (at) => {
  const bytes = new Uint8Array(model.memory.buffer);
  return Buffer.from(bytes.slice(at, bytes.indexOf(0, at))).toString();
};

let end = model.__heap_base.value;
const memory = (bytes) => {
  const at = Math.ceil(end / 64) * 64;
  end = at + bytes;
  const missing = end - model.memory.buffer.byteLength;
  if (missing > 0) model.memory.grow(Math.ceil(missing / 65536));
  return at;
};

// struct tfaot_model_info, struct tfaot_function_info and struct tfaot_tensor_info
const info = model.m_info();
const run = word(info + 28);
const tensors = (at, count) =>
  Array.from({ length: count }, (_, i) => ({ name: text(word(at + 24 * i)), bytes: word(at + 24 * i + 20) }));
const args = tensors(word(run + 20), word(run + 4));
const results = tensors(word(run + 24), word(run + 8));
const workspace = memory(word(run + 36));
const path = (kind, name) => `${folder}/${kind}.${name.replaceAll("/", "_")}`;
const pointers = (all) => {
  const list = memory(4 * all.length);
  all.forEach((one, i) => {
    one.at = memory(one.bytes);
    new DataView(model.memory.buffer).setUint32(list + 4 * i, one.at, true);
  });
  return list;
};
const [given, made] = [pointers(args), pointers(results)];
for (const { name, at, bytes } of args) {
  const content = readFileSync(path("in", name));
  if (content.length !== bytes) throw new Error(`${name}: ${content.length} bytes, not ${bytes}`);
  new Uint8Array(model.memory.buffer).set(content, at);
}
if (word(info) !== 1 || model.m_supported() !== 1) throw new Error("another interface");
const code = model.m_run(given, made, workspace, 0);
if (code !== 0) throw new Error(`the call returned ${code}`);
for (const { name, at, bytes } of results) {
  writeFileSync(path("out", name), new Uint8Array(model.memory.buffer, at, bytes));
}
