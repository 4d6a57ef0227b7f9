// Where every sample is on the map, and which colour and shape it has.

const view = { across: 0, up: 1, colouring: 0, zoom: 1, left: 0, top: 0, width: 1, height: 1, hidden: new Set() };
const MARGIN = { left: 46, right: 12, top: 12, bottom: 30 };
const GREY = [150, 150, 150];

// The order in which points are drawn: mixed, so that no class lies on top of all others.
function mixedOrder(count) {
  const order = Uint32Array.from({ length: count }, (_, i) => i);
  let seed = 12345;
  for (let i = count - 1; i > 0; i -= 1) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const other = seed % (i + 1);
    [order[i], order[other]] = [order[other], order[i]];
  }
  return order;
}

function extent(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (!(low <= high)) return [0, 1];
  // Codes that differ by rounding alone are one place on the map.
  const alike = high - low < 1e-9 * Math.max(-low, high, 1 / record.unit);
  const pad = alike ? 1 / record.unit : 0.04 * (high - low);
  return [low - pad, high + pad];
}

function place() {
  view.ends = [extent(data.codes[view.across]), extent(data.codes[view.up])];
}

const inner = () => ({
  width: Math.max(1, view.width - MARGIN.left - MARGIN.right),
  height: Math.max(1, view.height - MARGIN.top - MARGIN.bottom),
});

// On the screen, in pixels of CSS: x = ax · code + bx, and the same for y.
function transform() {
  const { width, height } = inner();
  const [[x0, x1], [y0, y1]] = view.ends;
  const ax = (view.zoom * width) / (x1 - x0);
  const ay = (-view.zoom * height) / (y1 - y0);
  return { ax, bx: MARGIN.left + view.left - ax * x0, ay, by: MARGIN.top + view.top - ay * y1 };
}

function onScreen(row) {
  const { ax, bx, ay, by } = transform();
  return [ax * data.codes[view.across][row] + bx, ay * data.codes[view.up][row] + by];
}

function zoomAt(factor, x, y) {
  const zoom = Math.min(200, Math.max(0.5, view.zoom * factor));
  const change = zoom / view.zoom;
  view.left = x - MARGIN.left - (x - MARGIN.left - view.left) * change;
  view.top = y - MARGIN.top - (y - MARGIN.top - view.top) * change;
  view.zoom = zoom;
}

function resetView() {
  Object.assign(view, { zoom: 1, left: 0, top: 0 });
}

// What the map can be coloured by: labels, columns, codes of any layer, anomalies.
function colourings() {
  const found = data.colours.map((part) => ({ ...part, group: part.kind === "column" ? "Columns" : "Labels" }));
  if (data.anomaly.some(Number.isFinite)) {
    found.push({ name: "distance to reconstruction", kind: "numbers", values: data.anomaly, group: "Anomaly" });
  }
  data.names.forEach((name, i) => {
    found.push({ name, kind: "numbers", values: data.codes[i], unit: record.unit, group: "Codes" });
  });
  return found;
}

function colourAll() {
  const part = data.colourings[view.colouring];
  const colours = new Uint32Array(data.count);
  const shapes = new Uint8Array(data.count);
  if (part.kind === "classes") {
    const table = part.classes.map((_, i) => packColour(...classColour(i, record.palette)));
    for (let i = 0; i < data.count; i += 1) {
      colours[i] = table[part.values[i]];
      shapes[i] = Math.floor(part.values[i] / record.palette.length) % SHAPES.length;
    }
  } else {
    part.ends = quantiles(part.values);
    const [low, high] = part.ends;
    const table = Array.from({ length: 256 }, (_, i) => packColour(...scaleColour(i / 255)));
    const scale = high > low ? 255 / (high - low) : 0;
    const missing = packColour(...GREY);
    for (let i = 0; i < data.count; i += 1) {
      const at = Math.round((part.values[i] - low) * scale);
      colours[i] = Number.isNaN(part.values[i]) ? missing : table[Math.min(255, Math.max(0, at))];
    }
  }
  view.colours = colours;
  view.shapes = shapes;
}

// The ends of a scale of colours leave out a hundredth at both sides, so that one far value does not take it all.
function quantiles(values) {
  const sorted = Float32Array.from(values).filter(Number.isFinite).sort();
  if (!sorted.length) return [0, 1];
  const at = (share) => sorted[Math.round(share * (sorted.length - 1))];
  return [at(0.01), at(0.99)];
}

function isHidden(row) {
  const part = data.colourings[view.colouring];
  return view.hidden.size > 0 && part.kind === "classes" && view.hidden.has(part.values[row]);
}

function colourText(row) {
  const part = data.colourings[view.colouring];
  const value = part.values[row];
  return `${part.name}: ${part.kind === "classes" ? part.classes[value] : number(value * (part.unit ?? 1))}`;
}
