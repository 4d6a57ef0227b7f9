// Drawing the map: points in one canvas, axes and what is pointed at in another above it.

const map = { wanted: false, moved: false, pixels: null, stage: null, overlay: null, path: null };
// Milliseconds of a drawing that can be made at every move of a drag, and of a pause in which a longer one is made.
const QUICK = 8;
const PAUSE = 150;

function startMap() {
  map.pixels = new Pixels(byId("points"));
  map.overlay = byId("overlay");
  map.stage = byId("stage");
  map.context = map.overlay.getContext("2d");
  map.order = mixedOrder(data.count);
  view.colouring = 0;
  data.colourings = colourings();
  fillSelects();
  new ResizeObserver(fitMap).observe(map.stage);
  dark.addEventListener("change", () => { recolour(); tell("theme"); });
  listen("sample", wantDrawing);
  listen("picked", () => { showPicked(); wantDrawing(); });
  place();
  recolour();
  showPicked();
}

function fitMap() {
  const box = map.stage.getBoundingClientRect();
  if (box.width < 1 || box.height < 1) return;
  const ratio = Math.min(2, devicePixelRatio || 1);
  view.width = Math.round(box.width);
  view.height = Math.round(box.height);
  view.ratio = ratio;
  map.pixels.resize(Math.round(view.width * ratio), Math.round(view.height * ratio));
  map.overlay.width = map.pixels.canvas.width;
  map.overlay.height = map.pixels.canvas.height;
  makeStamps();
  drawMap();
}

function makeStamps() {
  const radius = data.count > 20000 ? 1.6 : data.count > 3000 ? 2.4 : data.count > 800 ? 3.2 : 4.2;
  const opacity = data.count > 20000 ? 0.55 : data.count > 3000 ? 0.75 : 1;
  map.radius = radius;
  map.stamps = SHAPES.map((_, i) => map.pixels.prepared(stamp(i, radius * view.ratio, opacity)));
  map.faint = SHAPES.map((_, i) => map.pixels.prepared(stamp(i, radius * view.ratio, 0.16)));
  map.rings = SHAPES.map((_, i) => map.pixels.prepared(stamp(i, (radius + 0.9) * view.ratio, 1)));
}

function wantDrawing() {
  map.moved = false;
  wantFrame();
}

// While points are many, a drag moves the picture of them, and draws them anew when it pauses or ends.
function wantMoving() {
  if (map.spent < QUICK) {
    wantDrawing();
    return;
  }
  if (!map.wanted) map.moved = true;
  wantFrame();
  clearTimeout(map.pause);
  map.pause = setTimeout(wantDrawing, PAUSE);
}

function wantFrame() {
  if (map.wanted) return;
  map.wanted = true;
  requestAnimationFrame(() => {
    map.wanted = false;
    if (map.moved) moveMap();
    else drawMap();
  });
}

function drawMap() {
  if (!map.stamps) return;
  clearTimeout(map.pause);
  const began = performance.now();
  const paper = packColour(...themeColour("--box"));
  map.pixels.clear(paper);
  drawPoints(paper);
  map.pixels.show();
  map.spent = performance.now() - began;
  map.drawn = { left: view.left, top: view.top };
  drawOverlay();
}

function moveMap() {
  if (!map.stamps) return;
  const { left, top } = map.drawn;
  map.pixels.showMoved((view.left - left) * view.ratio, (view.top - top) * view.ratio, cssColour(themeColour("--box")));
  drawOverlay();
}

function drawPoints(paper) {
  const { ax, bx, ay, by } = transform();
  const { ratio } = view;
  const places = { xs: data.codes[view.across], ys: data.codes[view.up], ax: ratio * ax, bx: ratio * bx, ay: ratio * ay, by: ratio * by };
  const looks = { colours: view.colours, shapes: view.shapes, ring: paper };
  const solid = { ...looks, stamps: map.stamps, rings: data.count <= 3000 ? map.rings : null };
  const shown = view.hidden.size ? map.order.filter((row) => !isHidden(row)) : map.order;
  if (!chosen.count) {
    map.pixels.scatter(shown, places, solid);
    return;
  }
  map.pixels.scatter(shown.filter((row) => !chosen.picked[row]), places, { ...looks, stamps: map.faint });
  map.pixels.scatter(shown.filter((row) => chosen.picked[row]), places, solid);
}

function drawOverlay() {
  if (!map.stamps) return;
  const { context, overlay } = map;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, overlay.width, overlay.height);
  context.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
  if (byId("thumbnails").checked) drawThumbnails(context);
  drawAxes(context);
  drawRing(context, chosen.sample, 2.5);
  if (chosen.hover >= 0) drawRing(context, chosen.hover, 1.5);
  if (map.path) drawPath(context);
}

function drawAxes(context) {
  const { width, height } = inner();
  const { ax, bx, ay, by } = transform();
  const [paper, soft, line] = ["--paper", "--soft", "--line"].map((name) => cssColour(themeColour(name)));
  context.fillStyle = paper;
  context.fillRect(0, 0, MARGIN.left, view.height);
  context.fillRect(0, view.height - MARGIN.bottom, view.width, MARGIN.bottom);
  context.font = "11px system-ui, sans-serif";
  context.strokeStyle = line;
  context.fillStyle = soft;
  context.lineWidth = 1;
  context.strokeRect(MARGIN.left + 0.5, 0.5, view.width - MARGIN.left - 1, view.height - MARGIN.bottom - 1);
  context.textAlign = "center";
  for (const [value, text] of ticks(-bx / ax, (view.width - bx) / ax, width / 60)) {
    const x = Math.round(ax * value + bx) + 0.5;
    if (x < MARGIN.left + 4 || x > view.width - 14) continue;
    context.fillText(text, x, view.height - MARGIN.bottom + 17);
    tickLine(context, x, view.height - MARGIN.bottom, 0, 4);
  }
  axisName(context, `${data.names[view.across]} →`, view.width - MARGIN.right - 60, view.height - MARGIN.bottom - 9);
  axisName(context, `↑ ${data.names[view.up]}`, MARGIN.left + 56, 18);
  context.textAlign = "right";
  for (const [value, text] of ticks((view.height - by) / ay, -by / ay, height / 60)) {
    const y = Math.round(ay * value + by) + 0.5;
    if (y < 10 || y > view.height - MARGIN.bottom - 4) continue;
    context.fillText(text, MARGIN.left - 7, y + 4);
    tickLine(context, MARGIN.left, y, -4, 0);
  }
}

// Readable above points as well.
function axisName(context, text, x, y) {
  context.save();
  context.lineWidth = 4;
  context.lineJoin = "round";
  context.strokeStyle = cssColour(themeColour("--box"));
  context.strokeText(text, x, y);
  context.fillText(text, x, y);
  context.restore();
}

function tickLine(context, x, y, dx, dy) {
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x + dx, y + dy);
  context.stroke();
}

// Round numbers, in units of n^(-1/2), about as many as asked for.
function ticks(low, high, many) {
  const [from, to] = [low * record.unit, high * record.unit];
  const rough = (to - from) / Math.max(2, many);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const found = [];
  for (let i = Math.ceil(from / step); i * step <= to && found.length < 50; i += 1) {
    found.push([(i * step) / record.unit, number(i * step)]);
  }
  return found;
}

function drawRing(context, row, width) {
  const [x, y] = onScreen(row);
  if (x < MARGIN.left || y > view.height - MARGIN.bottom) return;
  for (const [name, size] of [["--paper", width + 2], ["--ink", width]]) {
    context.strokeStyle = cssColour(themeColour(name));
    context.lineWidth = size;
    context.beginPath();
    context.arc(x, y, map.radius + 4, 0, 2 * Math.PI);
    context.stroke();
  }
}

function drawPath(context) {
  context.beginPath();
  map.path.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.closePath();
  const link = themeColour("--link");
  context.fillStyle = `rgb(${link.join(" ")} / 12%)`;
  context.fill();
  context.strokeStyle = cssColour(link);
  context.lineWidth = 1.5;
  context.stroke();
}

// Small pictures of samples in their places, as many as do not cover each other.
function drawThumbnails(context) {
  const size = 34;
  const taken = new Set();
  for (const row of map.order) {
    const at = data.place.get(row);
    const [x, y] = onScreen(row);
    if (at === undefined || isHidden(row) || (chosen.count && !chosen.picked[row])) continue;
    if (x < MARGIN.left + size / 2 || y > view.height - MARGIN.bottom - size / 2 || x > view.width || y < 0) continue;
    const cell = [Math.floor(x / size), Math.floor(y / size)];
    const near = [-1, 0, 1].flatMap((i) => [-1, 0, 1].map((j) => `${cell[0] + i},${cell[1] + j}`));
    const clear = near.every((key) => !taken.has(key) || !overlaps(taken, key, x, y, size));
    if (!clear) continue;
    taken.add(`${cell[0]},${cell[1]}`);
    taken[`${cell[0]},${cell[1]}`] = [x, y];
    context.drawImage(thumbnail(at), x - size / 2, y - size / 2, size, size);
    context.lineWidth = 2;
    const colour = view.colours[row];
    context.strokeStyle = `rgb(${colour & 255} ${(colour >> 8) & 255} ${(colour >> 16) & 255})`;
    context.strokeRect(x - size / 2, y - size / 2, size, size);
  }
}

function overlaps(taken, key, x, y, size) {
  const [otherX, otherY] = taken[key];
  return Math.abs(otherX - x) < size + 2 && Math.abs(otherY - y) < size + 2;
}

const thumbnails = new Map();

function thumbnail(at) {
  if (!thumbnails.has(at)) thumbnails.set(at, picture(imageData(data.original, at * sampleSize, record.sample.shape)));
  return thumbnails.get(at);
}
