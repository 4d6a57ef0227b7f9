// Moving along the codes: a page holds what one code does, the model behind a live page decodes any codes.

const traverse = { base: null, codes: null, strips: null, point: null, rows: [], asking: false, again: false };

function startTraverse() {
  const select = byId("base");
  select.append(...data.bases.map((base, i) => make("option", { value: String(i) }, base.name)));
  select.addEventListener("change", () => begin(data.bases[Number(select.value)]));
  byId("back").addEventListener("click", () => begin(traverse.base));
  traverse.gain = isImage ? brightening() : 1;
  byId("traverse-note").replaceChildren(...withCode(traverseNote()));
  let layer = -1;
  data.names.forEach((name, code) => {
    const row = sliderRow(code, moveCode, settle);
    const own = Number(name.slice(6, name.indexOf(",")));
    if (own !== layer) byId("sliders").append(make("h3", {}, `Layer ${own}`), ...layerNote(own));
    layer = own;
    traverse.rows.push(row);
    byId("sliders").append(row.node);
  });
  const here = byId("begin-here");
  here.hidden = !data.live;
  here.addEventListener("click", beginHere);
  listen("theme", showNow);
  begin(data.bases[0]);
}

// Deep layers of little weight do not show in images: their reader need not look for a change.
function layerNote(layer) {
  const codes = [...data.names.keys()].filter((code) => data.names[code].startsWith(`layer ${layer},`));
  const told = "None of these codes changes the image visibly.";
  return isImage && !codes.some((code) => isSeen(data.bases[0].strips, code)) ? [make("p", { className: "note" }, told)] : [];
}

function traverseNote() {
  const told = data.live
    ? "Each slider moves one code; the model decodes what all of them say."
    : "Each slider moves one code of the sample and leaves the others as they are. "
      + "To move several at once, and from any sample: `drkm explore --live`.";
  if (!isImage) return `${told} Beside each slider: the columns that it moves most, in standard deviations, from end to end.`;
  return traverse.gain > 1.05 ? `${told} Images are brightened ${number(Math.round(10 * traverse.gain) / 10)} times.` : told;
}

// Averages of many images are darker than any of them: the brightest pixel of the first strips becomes white.
function brightening() {
  const brightest = data.bases[0].strips.reduce((most, pixel) => Math.max(most, pixel), 1);
  return 255 / brightest;
}

function begin(base) {
  Object.assign(traverse, { base, codes: Float32Array.from(base.codes), strips: base.strips, point: base.point, moved: -1 });
  showSliders();
  showNow();
  if (!base.strips) settle();
}

async function beginHere() {
  const codes = data.codes.map((column) => column[chosen.sample]);
  const base = { name: nameOf(chosen.sample), codes, point: await ask("decode", { codes: [codes] }), strips: null };
  data.bases.push(base);
  byId("base").append(make("option", { value: String(data.bases.length - 1) }, base.name));
  byId("base").value = String(data.bases.length - 1);
  begin(base);
  byId("traverse").scrollIntoView();
}

function moveCode(code, position) {
  if (!data.live) {
    traverse.codes = Float32Array.from(traverse.base.codes);
    position = Math.round(position);
    const at = (code * record.traverse.steps + position) * sampleSize;
    traverse.point = traverse.base.strips.subarray(at, at + sampleSize);
  }
  traverse.codes[code] = valueAt(code, position);
  traverse.moved = code;
  showSliders(code);
  showNow();
  if (data.live) decode();
}

// One question at a time: while the model answers, only the last position counts.
async function decode() {
  if (traverse.asking) {
    traverse.again = true;
    return;
  }
  traverse.asking = true;
  const began = performance.now();
  try {
    traverse.point = await ask("decode", { codes: [Array.from(traverse.codes)] });
    byId("traverse-state").textContent = `decoded in ${Math.round(performance.now() - began)} ms`;
  } catch (error) {
    byId("traverse-state").textContent = error.message;
  }
  traverse.asking = false;
  showNow();
  if (traverse.again) {
    traverse.again = false;
    decode();
  }
}

// When a slider of a live page comes to rest, the strips of all codes are those of where it is.
async function settle() {
  if (!data.live) return;
  const codes = Array.from(traverse.codes);
  try {
    const strips = await ask("strips", { codes: [codes] });
    if (codes.some((code, i) => code !== traverse.codes[i])) return;
    traverse.strips = strips;
    showSliders();
  } catch (error) {
    byId("traverse-state").textContent = error.message;
  }
}

function showSliders(moving = -1) {
  traverse.rows.forEach(({ input, output, strip }, code) => {
    const position = positionOf(code, traverse.codes[code]);
    if (code !== moving || !data.live) input.value = String(position);
    output.textContent = hundredths(traverse.codes[code] * record.unit);
    input.setAttribute("aria-valuetext", output.textContent);
    if (!traverse.strips) return;
    if (isImage) drawStrip(strip, traverse.strips, code, code === traverse.moved ? position : null);
    else if (moving < 0) strip.textContent = effectText(traverse.strips, code);
  });
}

function showNow() {
  const told = traverse.moved < 0 ? traverse.base.name : `${data.names[traverse.moved]} moved`;
  if (isImage) {
    const { shape } = record.sample;
    const start = traverse.base.point;
    byId("now").replaceChildren(
      captioned(picture(imageData(traverse.point, 0, shape, traverse.gain), told), told),
      traverse.moved < 0 ? "" : captioned(picture(differenceData(start, traverse.point, shape, traverse.gain), "What has changed"), "what has changed"),
    );
    return;
  }
  if (traverse.moved < 0) {
    const hint = "Move a slider: the columns that change most are listed here.";
    byId("now").replaceChildren(make("p", { className: "named" }, make("strong", {}, told)), make("p", { className: "note" }, hint));
    return;
  }
  const { columns, spread } = record.sample;
  const lines = columns.map((name, i) => {
    const [from, to] = [traverse.base.point[i], traverse.point[i]];
    return [name, from, to, (to - from) / spread[i]];
  });
  lines.sort((a, b) => Math.abs(b[3]) - Math.abs(a[3]));
  const largest = Math.max(0.3, ...lines.map((line) => Math.abs(line[3])));
  const heads = ["column", "begin", "now", "change in s.d."];
  byId("now").replaceChildren(make("p", { className: "named" }, make("strong", {}, told)), valueTable(heads, lines.slice(0, 14), largest));
}
