// What the reader does with the map: hover, drag, lasso, pinch, wheel and keys.

const pointers = new Map();
const gesture = { lasso: false, moved: 0, reach: 14 };

function startGestures() {
  const { overlay } = map;
  overlay.addEventListener("pointerdown", pointerDown);
  overlay.addEventListener("pointermove", pointerMove);
  for (const name of ["pointerup", "pointercancel"]) overlay.addEventListener(name, pointerUp);
  overlay.addEventListener("pointerleave", () => hover(-1));
  overlay.addEventListener("wheel", wheel, { passive: false });
  overlay.addEventListener("keydown", mapKey);
  overlay.addEventListener("dblclick", (event) => { zoomAt(2, ...inMap(event)); wantDrawing(); });
  byId("move").addEventListener("click", () => lassoMode(false));
  byId("lasso").addEventListener("click", () => lassoMode(true));
  byId("closer").addEventListener("click", () => zoomMiddle(1.5));
  byId("farther").addEventListener("click", () => zoomMiddle(1 / 1.5));
  byId("reset").addEventListener("click", () => { resetView(); wantDrawing(); });
  byId("thumbnails").addEventListener("change", wantDrawing);
  byId("selected-clear").addEventListener("click", () => pick([]));
  byId("selected-download").addEventListener("click", downloadPicked);
}

function lassoMode(on) {
  gesture.lasso = on;
  byId("lasso").setAttribute("aria-pressed", String(on));
  byId("move").setAttribute("aria-pressed", String(!on));
  map.overlay.classList.toggle("selecting", on);
}

function inMap(event) {
  const box = map.overlay.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

function pointerDown(event) {
  if (event.button > 0) return;
  map.overlay.setPointerCapture(event.pointerId);
  map.overlay.focus({ preventScroll: true });
  pointers.set(event.pointerId, inMap(event));
  gesture.moved = pointers.size > 1 ? Infinity : 0;
  map.path = pointers.size === 1 && (gesture.lasso || event.shiftKey) ? [inMap(event)] : null;
  hover(-1);
}

function pointerMove(event) {
  const [x, y] = inMap(event);
  if (!pointers.has(event.pointerId)) {
    if (event.pointerType === "mouse") hover(sampleAt(x, y));
    return;
  }
  const [oldX, oldY] = pointers.get(event.pointerId);
  gesture.moved += Math.hypot(x - oldX, y - oldY);
  if (pointers.size === 2) pinch(event.pointerId, x, y);
  else if (map.path) map.path.push([x, y]);
  else {
    view.left += x - oldX;
    view.top += y - oldY;
  }
  pointers.set(event.pointerId, [x, y]);
  if (map.path) drawOverlay();
  else if (pointers.size === 1) wantMoving();
  else wantDrawing();
}

function pinch(id, x, y) {
  const [otherX, otherY] = [...pointers].find(([other]) => other !== id)[1];
  const [oldX, oldY] = pointers.get(id);
  const before = Math.hypot(oldX - otherX, oldY - otherY) || 1;
  zoomAt(Math.hypot(x - otherX, y - otherY) / before, (x + otherX) / 2, (y + otherY) / 2);
  view.left += (x - oldX) / 2;
  view.top += (y - oldY) / 2;
}

function pointerUp(event) {
  if (!pointers.delete(event.pointerId)) return;
  const { path } = map;
  map.path = null;
  if (event.type === "pointercancel") wantDrawing();
  else if (path && path.length > 2) pick(inside(path));
  else if (gesture.moved < 5) {
    const row = sampleAt(...inMap(event));
    if (row >= 0) choose(row);
  }
  wantDrawing();
}

function wheel(event) {
  if (!(event.ctrlKey || event.metaKey || document.activeElement === map.overlay)) return;
  event.preventDefault();
  zoomAt(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.002)), ...inMap(event));
  wantDrawing();
}

function zoomMiddle(factor) {
  zoomAt(factor, view.width / 2, view.height / 2);
  wantDrawing();
}

function sampleAt(x, y) {
  const { ax, bx, ay, by } = transform();
  const [xs, ys] = [data.codes[view.across], data.codes[view.up]];
  let best = gesture.reach ** 2;
  let found = -1;
  for (let row = 0; row < data.count; row += 1) {
    const distance = (ax * xs[row] + bx - x) ** 2 + (ay * ys[row] + by - y) ** 2;
    if (distance < best && !isHidden(row)) [best, found] = [distance, row];
  }
  return found;
}

function inside(path) {
  const { ax, bx, ay, by } = transform();
  const found = [];
  for (let row = 0; row < data.count; row += 1) {
    const x = ax * data.codes[view.across][row] + bx;
    const y = ay * data.codes[view.up][row] + by;
    let within = false;
    for (let i = 0, j = path.length - 1; i < path.length; j = i, i += 1) {
      const [[xi, yi], [xj, yj]] = [path[i], path[j]];
      if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) within = !within;
    }
    if (within && !isHidden(row)) found.push(row);
  }
  return found;
}

// The nearest sample in one direction, as seen from the chosen one.
function neighbour(dx, dy) {
  const [x, y] = onScreen(chosen.sample);
  let best = Infinity;
  let found = chosen.sample;
  for (let row = 0; row < data.count; row += 1) {
    const [otherX, otherY] = onScreen(row);
    const along = (otherX - x) * dx + (otherY - y) * dy;
    const aside = Math.abs((otherX - x) * dy) + Math.abs((otherY - y) * dx);
    const cost = along + 2 * aside;
    if (along > 0.5 && cost < best && !isHidden(row)) [best, found] = [cost, row];
  }
  return found;
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function mapKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const keys = {
    "+": () => zoomMiddle(1.3),
    "-": () => zoomMiddle(1 / 1.3),
    0: () => { resetView(); wantDrawing(); },
    " ": () => pick([chosen.sample], true),
    Escape: () => pick([]),
    l: () => lassoMode(true),
    m: () => lassoMode(false),
  };
  if (ARROWS[event.key]) arrow(...ARROWS[event.key], event.shiftKey);
  else if (keys[event.key]) keys[event.key]();
  else return;
  event.preventDefault();
}

function arrow(dx, dy, pan) {
  if (pan) {
    view.left -= 40 * dx;
    view.top -= 40 * dy;
    wantDrawing();
  } else choose(neighbour(dx, dy));
}

function hover(row) {
  if (row === chosen.hover) return;
  chosen.hover = row;
  const tip = byId("tip");
  tip.hidden = row < 0;
  if (row >= 0) showTip(tip, row);
  drawOverlay();
}

function showTip(tip, row) {
  const at = data.place.get(row);
  const texts = [make("strong", {}, nameOf(row)), make("span", {}, colourText(row))];
  if (Number.isFinite(data.anomaly[row])) texts.push(make("span", {}, `to reconstruction: ${number(data.anomaly[row])}`));
  const image = isImage && at !== undefined ? picture(imageData(data.original, at * sampleSize, record.sample.shape)) : null;
  tip.replaceChildren(...[image, make("div", {}, ...texts)].filter(Boolean));
  const [x, y] = onScreen(row);
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, x + 16 + box.width > view.width ? x - 16 - box.width : x + 16)}px`;
  tip.style.top = `${Math.min(Math.max(4, y - box.height / 2), view.height - box.height - 4)}px`;
}

function showPicked() {
  byId("selected-count").textContent = chosen.count ? `${counted(chosen.count, "sample")} selected` : "Nothing selected";
  byId("selected-download").disabled = byId("selected-clear").disabled = !chosen.count;
}

function downloadPicked() {
  const labels = data.colours.filter((part) => part.kind === "classes" || part.kind === "numbers");
  const rows = [["row", ...(record.names ? ["name"] : []), ...labels.map((part) => part.name)]];
  for (let row = 0; row < data.count; row += 1) {
    if (!chosen.picked[row]) continue;
    const told = labels.map((part) => (part.kind === "classes" ? part.classes[part.values[row]] : part.values[row]));
    rows.push([row, ...(record.names ? [record.names[row]] : []), ...told]);
  }
  download("selected.csv", rows);
}
