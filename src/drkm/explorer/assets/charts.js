// Charts of a few numbers, in lines and bars.

// Width of the number of a code, with a space.
const LABEL = 18;
const CHART = { width: 360, height: 190, left: 52, right: 8, top: 10, bottom: 30 };

function frame(title, description) {
  const { width, height } = CHART;
  const drawn = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}: ${description}` });
  const { left, right, top, bottom } = CHART;
  const axis = { class: "axis" };
  drawn.append(
    draw("line", { x1: left, x2: left, y1: top, y2: height - bottom, ...axis }),
    draw("line", { x1: left, x2: width - right, y1: height - bottom, y2: height - bottom, ...axis }),
  );
  return drawn;
}

const label = (text, x, y, anchor = "middle") => {
  const node = draw("text", { x, y, "text-anchor": anchor });
  node.textContent = text;
  return node;
};

function chartFigure(drawn, title, note) {
  return make("figure", { className: "chart" }, make("figcaption", {}, make("strong", {}, title), make("span", { className: "note" }, note)), drawn);
}

// The codes of one sample, in standard deviations from their means, a colour per layer.
function codesOf(row) {
  data.spreads ??= data.codes.map(meanAndDeviation);
  const shares = data.codes.map((column, c) => (column[row] - data.spreads[c].mean) / (data.spreads[c].deviation || 1));
  const several = record.model.layers.length > 1;
  const [width, height, most] = [360, several ? 98 : 84, 3];
  const title = "Codes, in deviations from their means";
  const drawn = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}: ${shares.map(signed).join(", ")}` });
  const slot = width / shares.length;
  const low = several ? height - 16 : height - 2;
  const middle = (low - 12) / 2;
  drawn.append(draw("line", { x1: 0, x2: width, y1: middle, y2: middle, class: "axis" }));
  const every = [1, 2, 5, 10, 20, 50].find((step) => slot * step >= LABEL) ?? 100;
  let code = 0;
  record.model.layers.forEach((layer, l) => {
    const colour = cssColour(classColour(l, record.palette));
    if (several) drawn.append(label(`layer ${l + 1}`, slot * (code + layer.components / 2), height - 2));
    for (let i = 0; i < layer.components; i += 1, code += 1) {
      const tall = (Math.min(most, Math.abs(shares[code])) / most) * (middle - 2);
      const bar = { x: slot * (code + 0.2), y: shares[code] > 0 ? middle - tall : middle, width: slot * 0.6, height: Math.max(1, tall), fill: colour };
      drawn.append(draw("rect", bar, draw("title", {}, `${data.names[code]}: ${signed(shares[code])}`)));
      if (i % every === 0) drawn.append(label(String(i), slot * (code + 0.5), low));
    }
  });
  return make("div", { className: "codes" }, make("h3", {}, title), drawn);
}

function meanAndDeviation(values) {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const deviation = Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length);
  return { mean, deviation };
}

// Shares of the trace, one bar per component.
function spectrum(layer, index) {
  const { width, height, left, right, top, bottom } = CHART;
  const shares = layer.eigenvalues.map((value) => (layer.trace > 0 ? value / layer.trace : 0));
  const together = shares.reduce((sum, share) => sum + share, 0);
  const title = `Layer ${index + 1}: spectrum`;
  const drawn = frame(title, shares.map(percent).join(", "));
  const highest = Math.max(1e-12, ...shares);
  const slot = (width - left - right) / shares.length;
  const colour = record.palette[index % record.palette.length];
  shares.forEach((share, i) => {
    const tall = Math.max(1, (Math.max(0, share) / highest) * (height - top - bottom));
    const bar = draw("rect", { x: left + slot * (i + 0.15), y: height - bottom - tall, width: slot * 0.7, height: tall, rx: 1.5, fill: colour });
    bar.append(draw("title", {}, `code ${i}: ${number(layer.eigenvalues[i])}, ${percent(share)} of the trace`));
    drawn.append(bar);
    if (shares.length <= 20 || i % 5 === 0) drawn.append(label(String(i), left + slot * (i + 0.5), height - bottom + 15));
  });
  drawn.append(label(percent(highest), left - 5, top + 8, "end"), label("0", left - 5, height - bottom, "end"));
  drawn.append(label("code", (left + width - right) / 2, height - 2));
  const samples = `effective sample size ${Math.round(layer.samples)} of ${record.model.samples}`;
  return chartFigure(drawn, title, `${layer.kernel}; together ${percent(together)} of the trace; ${samples}`);
}

// Stationarity on a scale of powers of ten, with the tolerance.
function convergence({ history, tol, outcome }) {
  const { width, height, left, right, top, bottom } = CHART;
  const points = history.iteration.map((i, at) => [i, history.stationarity[at]]).filter(([, value]) => value > 0);
  if (points.length < 2) return null;
  const drawn = frame("Convergence", outcome);
  const logs = points.map(([, value]) => Math.log10(value));
  const low = Math.floor(Math.min(Math.log10(tol), ...logs));
  const high = Math.ceil(Math.max(...logs));
  const last = points[points.length - 1][0];
  const x = (i) => left + ((i - points[0][0]) / Math.max(1, last - points[0][0])) * (width - left - right);
  const y = (log) => top + ((high - log) / Math.max(1, high - low)) * (height - top - bottom);
  const step = Math.ceil((high - low) / 6);
  for (let power = low; power <= high; power += step) {
    drawn.append(draw("line", { x1: left, x2: width - right, y1: y(power), y2: y(power), class: "grid" }));
    drawn.append(label(`1e${power}`.replace("-", "−"), left - 5, y(power) + 4, "end"));
  }
  const path = points.map(([i], at) => `${at ? "L" : "M"}${x(i).toFixed(1)} ${y(logs[at]).toFixed(1)}`).join("");
  drawn.append(draw("line", { x1: left, x2: width - right, y1: y(Math.log10(tol)), y2: y(Math.log10(tol)), class: "limit" }));
  drawn.append(draw("path", { d: path, class: "curve", stroke: record.palette[0] }));
  drawn.append(label(String(points[0][0]), left, height - bottom + 15), label(String(last), width - right - 4, height - bottom + 15));
  drawn.append(label("iteration", (left + width - right) / 2, height - 2));
  // A minus sign, unlike a hyphen, does not end a line.
  return chartFigure(drawn, "Convergence: stationarity", outcome.replaceAll(/e-(?=\d)/g, "e−"));
}
