// Many points quickly: each is a small mask, blended into the pixels of the canvas one by one.

const SHAPES = [
  (x, y) => x * x + y * y <= 1,
  (x, y) => Math.abs(x) + Math.abs(y) <= 1.25,
  (x, y) => y <= 0.75 && Math.abs(x) <= 0.62 * (y + 1.05),
  (x, y) => Math.max(Math.abs(x), Math.abs(y)) <= 0.85,
  (x, y) => Math.min(Math.abs(x), Math.abs(y)) <= 0.3 && Math.max(Math.abs(x), Math.abs(y)) <= 1.1,
];
const FINE = 4;

// Offsets and coverages, from 0 to 256, of the pixels of a shape.
function stamp(shape, radius, opacity) {
  const reach = Math.ceil(radius * 1.3);
  const found = [];
  for (let y = -reach; y <= reach; y += 1) {
    for (let x = -reach; x <= reach; x += 1) {
      let inside = 0;
      for (let i = 0; i < FINE * FINE; i += 1) {
        const u = x + ((i % FINE) + 0.5) / FINE - 0.5;
        const v = y + (Math.floor(i / FINE) + 0.5) / FINE - 0.5;
        if (SHAPES[shape](u / radius, v / radius)) inside += 1;
      }
      const cover = Math.round((256 * opacity * inside) / (FINE * FINE));
      if (cover > 0) found.push({ x, y, cover });
    }
  }
  return { reach, x: found.map((p) => p.x), y: found.map((p) => p.y), cover: found.map((p) => p.cover) };
}

class Pixels {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.resize(1, 1);
  }

  resize(width, height) {
    // Kept here too: to ask an element for its size takes longer than to draw a point.
    this.width = this.canvas.width = width;
    this.height = this.canvas.height = height;
    this.image = this.context.createImageData(width, height);
    this.buffer = new Uint32Array(this.image.data.buffer);
  }

  clear(colour) {
    this.buffer.fill(colour);
  }

  show() {
    this.context.putImageData(this.image, 0, 0);
  }

  // What was drawn, elsewhere: a drag moves it before it is drawn anew.
  showMoved(dx, dy, colour) {
    this.context.fillStyle = colour;
    this.context.fillRect(0, 0, this.width, this.height);
    this.context.putImageData(this.image, Math.round(dx), Math.round(dy));
  }

  // One stamp as offsets in the buffer, for points that are not at the border.
  prepared(mask) {
    const offsets = Int32Array.from(mask.x, (x, i) => mask.y[i] * this.width + x);
    return { reach: mask.reach, offsets, cover: Int32Array.from(mask.cover) };
  }

  // Stamp the rows of a list where the transform says, in their colours and shapes, rings of one colour below them.
  scatter(rows, { xs, ys, ax, bx, ay, by }, { colours, shapes, stamps, rings, ring }) {
    for (let i = 0; i < rows.length; i += 1) {
      const row = rows[i];
      const x = Math.round(ax * xs[row] + bx);
      const y = Math.round(ay * ys[row] + by);
      const shape = shapes[row];
      if (rings) this.put(rings[shape], x, y, ring);
      this.put(stamps[shape], x, y, colours[row]);
    }
  }

  put(prepared, x, y, colour) {
    const { width, height, buffer } = this;
    const { reach, offsets, cover } = prepared;
    if (x < reach || y < reach || x >= width - reach || y >= height - reach) return;
    const middle = y * width + x;
    const redBlue = colour & 0xff00ff;
    const green = colour & 0x00ff00;
    for (let i = 0; i < offsets.length; i += 1) {
      const at = middle + offsets[i];
      const a = cover[i];
      if (a >= 256) {
        buffer[at] = colour;
        continue;
      }
      const below = buffer[at];
      const mixedRedBlue = ((redBlue * a + (below & 0xff00ff) * (256 - a)) >>> 8) & 0xff00ff;
      const mixedGreen = ((green * a + (below & 0x00ff00) * (256 - a)) >>> 8) & 0x00ff00;
      buffer[at] = 0xff000000 | mixedRedBlue | mixedGreen;
    }
  }
}
