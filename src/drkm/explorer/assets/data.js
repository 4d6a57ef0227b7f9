// The record of the page, unpacked, and what the reader has chosen in it.

const record = JSON.parse(byId("record").textContent);
const data = { count: record.count, live: record.live, sample: record.sample, model: record.model };
const chosen = { sample: 0, hover: -1, picked: new Uint8Array(record.count), count: 0 };

const isImage = record.sample.kind === "image";
const sampleSize = isImage ? record.sample.shape.reduce((a, b) => a * b) : record.sample.columns.length;

function codeNames() {
  const names = [];
  record.model.layers.forEach((layer, l) => {
    for (let i = 0; i < layer.components; i += 1) names.push(`layer ${l + 1}, code ${i}`);
  });
  return names;
}

async function unpackAll() {
  data.names = codeNames();
  data.codes = await unpackColumns(record.codes);
  [data.anomaly] = await unpackColumns(record.anomaly);
  data.colours = await Promise.all(record.colours.map(unpackColouring));
  data.held = await unpack(record.sample.rows);
  data.place = new Map(Array.from(data.held, (row, place) => [row, place]));
  data.original = await unpack(record.sample.original);
  data.reconstruction = await unpack(record.sample.reconstruction);
  if (record.reference) {
    const codes = await unpack(record.reference.codes);
    const rows = await unpack(record.reference.rows);
    data.reference = { rows, original: await unpack(record.reference.original), codes };
  }
  data.values = await unpack(record.traverse.values);
  data.bases = await Promise.all(record.traverse.bases.map(async (base) => ({
    name: base.name,
    row: base.row,
    codes: await unpack(base.codes),
    point: await unpack(base.point),
    strips: await unpack(base.strips),
  })));
}

async function unpackColouring(part) {
  if (part.kind === "classes") return { ...part, values: await unpack(part.values) };
  const [values] = await unpackColumns(part.values);
  return { ...part, values };
}

const nameOf = (row) => (record.names ? record.names[row] : `row ${row}`);

function choose(row) {
  chosen.sample = Math.min(data.count - 1, Math.max(0, row));
  tell("sample");
}

function pick(rows, add = false) {
  if (!add) chosen.picked.fill(0);
  for (const row of rows) chosen.picked[row] = add ? 1 - chosen.picked[row] : 1;
  chosen.count = chosen.picked.reduce((sum, one) => sum + one, 0);
  tell("picked");
}

// What the model behind a live page answers: the bytes of samples, as they are stored in the page.
async function ask(what, question) {
  const answer = await fetch(what, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(question),
  });
  if (!answer.ok) throw new Error((await answer.json()).error);
  const bytes = await answer.arrayBuffer();
  return isImage ? new Uint8Array(bytes) : new Float32Array(bytes);
}

// Where the original and the reconstruction of a sample are: in the page, behind it, or nowhere.
async function detailsOf(row) {
  const place = data.place.get(row);
  if (place !== undefined) {
    const at = place * sampleSize;
    const part = (all) => all.subarray(at, at + sampleSize);
    return { original: part(data.original), reconstruction: part(data.reconstruction) };
  }
  if (!data.live) return null;
  const both = await ask("sample", { row });
  return { original: both.subarray(0, sampleSize), reconstruction: both.subarray(sampleSize) };
}

// The training samples whose codes are nearest; shown samples where these are the training samples.
function nearest(row, most) {
  const found = [];
  const width = data.codes.length;
  const own = data.codes.map((column) => column[row]);
  const total = data.reference ? data.reference.rows.length : data.count;
  for (let other = 0; other < total; other += 1) {
    if (!data.reference && (other === row || !(data.place.has(other) || data.live))) continue;
    let distance = 0;
    for (let c = 0; c < width; c += 1) {
      const code = data.reference ? data.reference.codes[other * width + c] : data.codes[c][other];
      distance += (code - own[c]) ** 2;
    }
    if (found.length < most || distance < found[found.length - 1].distance) {
      found.push({ other, distance });
      found.sort((a, b) => a.distance - b.distance);
      if (found.length > most) found.pop();
    }
  }
  return found.map((one) => one.other);
}
