// The choices above the map and the legend below it.

function options(names, groups) {
  const boxes = new Map();
  names.forEach((name, i) => {
    if (!boxes.has(groups[i])) boxes.set(groups[i], make("optgroup", { label: groups[i] }));
    boxes.get(groups[i]).append(make("option", { value: String(i) }, name));
  });
  return [...boxes.values()];
}

function fillSelects() {
  const layers = record.model.layers.flatMap((layer, l) => Array(layer.components).fill(`Layer ${l + 1}`));
  [view.across, view.up] = firstAxes();
  for (const name of ["across", "up"]) {
    const select = byId(name);
    select.append(...options(data.names, layers));
    select.value = String(view[name]);
    select.addEventListener("change", () => { view[name] = Number(select.value); place(); resetView(); wantDrawing(); });
  }
  const colour = byId("colour");
  colour.append(...options(data.colourings.map((part) => part.name), data.colourings.map((part) => part.group)));
  colour.addEventListener("change", () => { view.colouring = Number(colour.value); view.hidden.clear(); recolour(); });
  byId("thumbnails-label").hidden = !isImage;
}

// The first two codes of layer 1 that vary more than they differ from 0: the first one is often nearly constant.
function firstAxes() {
  const found = [];
  for (let c = 0; c < record.model.layers[0].components; c += 1) {
    let [sum, squares] = [0, 0];
    for (const code of data.codes[c]) { sum += code; squares += code * code; }
    const mean = sum / data.count;
    if (squares / data.count > 2 * mean * mean) found.push(c);
  }
  const [across, up] = found.length > 1 ? found : [0, Math.min(1, data.codes.length - 1)];
  return [across, up];
}

function recolour() {
  colourAll();
  showLegend();
  if (map.stamps) wantDrawing();
}

function showLegend() {
  const part = data.colourings[view.colouring];
  const legend = byId("legend");
  legend.replaceChildren(make("span", { className: "legend-title" }, part.name));
  if (part.kind === "classes") legend.append(...part.classes.map(legendButton));
  else {
    const bar = make("canvas", { width: 128, height: 1, className: "scale" });
    bar.setAttribute("aria-hidden", "true");
    const context = bar.getContext("2d");
    for (let i = 0; i < 128; i += 1) {
      context.fillStyle = cssColour(scaleColour(i / 127));
      context.fillRect(i, 0, 1, 1);
    }
    const [low, high] = part.ends.map((end) => number(end * (part.unit ?? 1)));
    legend.append(make("span", {}, low), bar, make("span", {}, high));
    if (part.values.some(Number.isNaN)) legend.append(make("span", { className: "note" }, "grey: not computed"));
  }
}

function legendButton(name, index) {
  const colour = cssColour(classColour(index, record.palette));
  const shape = Math.floor(index / record.palette.length) % SHAPES.length;
  const button = make("button", { type: "button", className: "class", title: "Show or hide" }, swatch(colour, shape), name);
  const show = () => button.setAttribute("aria-pressed", String(!view.hidden.has(index)));
  button.addEventListener("click", () => {
    if (!view.hidden.delete(index)) view.hidden.add(index);
    show();
    wantDrawing();
  });
  show();
  return button;
}

function swatch(colour, shape) {
  const drawn = draw("svg", { viewBox: "-6 -6 12 12", width: 12, height: 12, "aria-hidden": "true" });
  const shapes = [
    draw("circle", { r: 5 }),
    draw("path", { d: "M0-6 6 0 0 6-6 0Z" }),
    draw("path", { d: "M0-5.5 5.5 4.5H-5.5Z" }),
    draw("rect", { x: -4.5, y: -4.5, width: 9, height: 9 }),
    draw("path", { d: "M-1.7-5.5h3.4v3.8h3.8v3.4h-3.8v3.8h-3.4v-3.8h-3.8v-3.4h3.8z" }),
  ];
  shapes[shape].setAttribute("fill", colour);
  drawn.append(shapes[shape]);
  return drawn;
}
