// One slider per code, with a strip of what it does.

// Largest width of a small image.
const THUMB = 58;
// Standard deviations below which a column counts as unmoved.
const NOTHING = 0.05;
// Grey levels, of 255, up to which a pixel counts as unchanged.
const UNSEEN = 12;

// A row of the sliders: its input, and how its strip is drawn.
function sliderRow(code, onInput, onSettled) {
  const { steps } = record.traverse;
  const name = data.names[code];
  const input = make("input", { type: "range", min: "0", max: String(steps - 1), step: data.live ? "any" : "1" });
  input.setAttribute("aria-label", name);
  const output = make("output", { className: "num" });
  const strip = isImage ? make("canvas", { className: "strip" }) : make("p", { className: "note effect" });
  if (isImage) strip.setAttribute("aria-hidden", "true");
  input.addEventListener("input", () => onInput(code, Number(input.value)));
  input.addEventListener("change", () => onSettled());
  if (isImage) strip.addEventListener("click", (event) => {
    onInput(code, Math.min(steps - 1, Math.floor((event.offsetX / strip.clientWidth) * steps)));
    onSettled();
  });
  const node = make("div", { className: "slider" }, make("span", { className: "slider-name", "aria-hidden": "true" }, name.slice(name.indexOf("code"))), input, output, strip);
  return { node, input, output, strip };
}

// Between two stored values of a code lie others, which only a live page decodes.
function valueAt(code, position) {
  const { steps } = record.traverse;
  const low = Math.min(steps - 2, Math.floor(position));
  const at = (step) => data.values[code * steps + step];
  return at(low) + (at(low + 1) - at(low)) * (position - low);
}

function positionOf(code, value) {
  const { steps } = record.traverse;
  const [low, high] = [data.values[code * steps], data.values[code * steps + steps - 1]];
  return high > low ? ((value - low) / (high - low)) * (steps - 1) : 0;
}

function drawStrip(canvas, strips, code, current) {
  const { steps } = record.traverse;
  const [height, width] = record.sample.shape;
  const gap = Math.ceil(width / 16);
  const cell = width + gap;
  canvas.width = steps * cell - gap;
  canvas.height = height;
  canvas.style.aspectRatio = `${canvas.width} / ${height}`;
  canvas.style.maxWidth = `${steps * THUMB}px`;
  const context = canvas.getContext("2d");
  for (let step = 0; step < steps; step += 1) {
    const image = imageData(strips, (code * steps + step) * sampleSize, record.sample.shape, traverse.gain);
    context.putImageData(image, step * cell, 0);
  }
  if (current === null) return;
  const line = Math.max(1, width / 20);
  context.strokeStyle = cssColour(hexColour(record.palette[4]));
  context.lineWidth = line;
  context.strokeRect(Math.round(current) * cell + line / 2, line / 2, width - line, height - line);
}

// Whether any pixel changes visibly from one end of a strip to the other.
function isSeen(strips, code) {
  const { steps } = record.traverse;
  const at = (step, pixel) => strips[(code * steps + step) * sampleSize + pixel];
  return Array.from({ length: sampleSize }, (_, pixel) => at(steps - 1, pixel) - at(0, pixel)).some((move) => Math.abs(move) > UNSEEN);
}

// The columns of a table that a code moves most, from one end of its strip to the other.
function effectText(strips, code) {
  const { steps } = record.traverse;
  const { columns, spread } = record.sample;
  const at = (step, column) => strips[(code * steps + step) * sampleSize + column];
  const moves = columns.map((name, column) => [name, (at(steps - 1, column) - at(0, column)) / spread[column]]);
  moves.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  if (Math.abs(moves[0][1]) < NOTHING) return `no column by more than ${NOTHING}`;
  return moves.slice(0, 3).map(([name, move]) => `${name} ${signed(move)}`).join(", ");
}
