// Files for other tools.

function download(name, type, text) {
  const link = element("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

const fileName = (source, ending) => source.replace(/\.[a-z]+$/i, "").replace(/[^\w.-]+/g, "_") + ending;

/** All data of the page as one document, as `tfaot report --json` prints it. */
async function wholeJson(model) {
  const data = { ...model.data }, codes = [];
  for (let i = 0; byId(`code-${i}`); i++) codes.push(JSON.parse(await unpacked(`code-${i}`)));
  if (codes.length) data.code = codes;
  return JSON.stringify(data);
}
