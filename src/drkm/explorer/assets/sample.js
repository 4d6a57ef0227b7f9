// One sample: beside its reconstruction, and the training samples nearest to it.

const NEAREST = 6;
const FIRST_COLUMNS = 12;

function startSample() {
  const row = byId("row");
  row.max = String(data.count - 1);
  row.addEventListener("change", () => choose(Number(row.value) || 0));
  byId("before").addEventListener("click", () => choose(chosen.sample - 1));
  byId("after").addEventListener("click", () => choose(chosen.sample + 1));
  listen("sample", showSample);
  listen("theme", showSample);
}

async function showSample() {
  const row = chosen.sample;
  byId("row").value = String(row);
  byId("before").disabled = row === 0;
  byId("after").disabled = row === data.count - 1;
  const shown = byId("sample-shown");
  let details;
  try {
    details = await detailsOf(row);
  } catch (error) {
    shown.replaceChildren(make("p", { className: "alert" }, error.message));
    return;
  }
  if (row !== chosen.sample) return;
  shown.replaceChildren(heading(row), ...body(details), neighbours(row), codesOf(row));
}

function heading(row) {
  const told = data.colours.filter((part) => part.kind !== "column").map((part) => {
    const value = part.kind === "classes" ? part.classes[part.values[row]] : number(part.values[row]);
    return `${part.name} ${value}`;
  });
  if (Number.isFinite(data.anomaly[row])) told.push(`${number(data.anomaly[row])} from its reconstruction`);
  return make("p", { className: "named" }, make("strong", {}, nameOf(row)), make("span", { className: "note" }, told.join(" · ")));
}

function body(details) {
  if (!details) {
    const told = "This page has no room for every sample. It is on the map, and `drkm explore --live` shows it whole.";
    return [make("p", { className: "note" }, ...withCode(told))];
  }
  return isImage ? [pictures(details)] : tableOf(details);
}

function pictures({ original, reconstruction }) {
  const { shape } = record.sample;
  return make(
    "div",
    { className: "pictures" },
    captioned(picture(imageData(original, 0, shape), "The sample"), "sample"),
    captioned(picture(imageData(reconstruction, 0, shape), "Its reconstruction"), "reconstruction"),
    captioned(picture(differenceData(original, reconstruction, shape), "Difference of both"), "difference: orange is too bright, blue too dark"),
  );
}

function tableOf({ original, reconstruction }) {
  const errors = Array.from(original, (value, i) => (reconstruction[i] - value) / record.sample.spread[i]);
  const order = errors.map((_, i) => i).sort((a, b) => Math.abs(errors[b]) - Math.abs(errors[a]));
  const largest = Math.max(0.3, ...errors.map(Math.abs));
  const lines = order.map((i) => [record.sample.columns[i], original[i], reconstruction[i], errors[i]]);
  const heads = ["column", "sample", "reconstructed", "error in s.d."];
  const first = valueTable(heads, lines.slice(0, FIRST_COLUMNS), largest);
  if (lines.length <= FIRST_COLUMNS) return [first];
  const rest = make("details", {}, make("summary", {}, counted(lines.length - FIRST_COLUMNS, "more column")));
  rest.append(valueTable(heads, lines.slice(FIRST_COLUMNS), largest));
  return [first, rest];
}

// Lines of a name, two numbers and a third that is drawn as a bar from the middle.
function valueTable(heads, lines, largest) {
  const head = make("tr", {}, ...heads.map((text, i) => make("th", { scope: "col", className: i ? "num" : "" }, text)));
  const rows = lines.map(([name, first, second, error]) => make(
    "tr",
    {},
    make("th", { scope: "row" }, ...breakable(name)),
    make("td", { className: "num" }, number(first)),
    make("td", { className: "num" }, number(second)),
    make("td", { className: "num bar-cell" }, signed(error), errorBar(error / largest)),
  ));
  const table = make("table", { className: "values" }, make("thead", {}, head), make("tbody", {}, ...rows));
  return make("div", { className: "scroll" }, table);
}

function errorBar(share) {
  const width = 22 * Math.min(1, Math.abs(share));
  const drawn = draw("svg", { viewBox: "-23 0 46 10", width: 46, height: 10, "aria-hidden": "true" });
  const colour = cssColour(hexColour(record.palette[share < 0 ? 0 : 1]));
  drawn.append(
    draw("line", { x1: 0, x2: 0, y1: 0, y2: 10, class: "axis" }),
    draw("rect", { x: share < 0 ? -width : 0, y: 1, width, height: 8, fill: colour }),
  );
  return drawn;
}

function neighbours(row) {
  const box = make("div", {}, make("h3", {}, data.reference || record.training ? "Nearest training samples" : "Nearest samples"));
  const list = make("div", { className: "near" });
  for (const other of nearest(row, NEAREST)) list.append(data.reference ? plainNeighbour(other) : neighbourButton(other));
  box.append(list, make("p", { className: "note" }, "By the distance of all codes."));
  return box;
}

function neighbourPicture(pixels, at) {
  return at === undefined ? null : picture(imageData(pixels, at * sampleSize, record.sample.shape));
}

function neighbourButton(other) {
  const image = isImage ? neighbourPicture(data.original, data.place.get(other)) : null;
  const button = make("button", { type: "button" }, image, make("span", {}, nameOf(other)));
  button.addEventListener("click", () => choose(other));
  return button;
}

function plainNeighbour(other) {
  const image = isImage ? neighbourPicture(data.reference.original, other) : null;
  return make("span", { className: "plain" }, image, make("span", {}, `training row ${data.reference.rows[other]}`));
}
