// The model itself, and the samples that it reconstructs worst.

const SHOWN_ANOMALIES = 20;

function startModel() {
  const { model } = record;
  const components = model.layers.reduce((sum, layer) => sum + layer.components, 0);
  byId("tiles").append(
    tile(model.samples.toLocaleString("en"), "training samples"),
    tile(model.features.toLocaleString("en"), isImage ? (record.sample.shape[2] > 1 ? "values of pixels" : "pixels") : "columns"),
    tile(String(components), model.layers.length === 1 ? "components" : `components in ${model.layers.length} layers`),
    tile(model.converged ? "converged" : "not converged", `energy ${number(model.objective)}`),
  );
  byId("charts").append(...model.layers.map(spectrum));
  const curve = convergence(model);
  if (curve) byId("charts").append(curve);
  for (const [name, value] of model.chosen) byId("chosen").append(make("dt", {}, name), make("dd", {}, value));
  byId("summary").textContent = model.summary;
  showAnomalies();
}

function tile(count, name) {
  return make("li", { className: "tile" }, make("span", { className: "count" }, count), make("span", { className: "note" }, name));
}

function ranked() {
  const rows = Array.from(data.anomaly.keys()).filter((row) => Number.isFinite(data.anomaly[row]));
  return rows.sort((a, b) => data.anomaly[b] - data.anomaly[a]);
}

// A way to write numbers with as many decimals as the largest of them.
function alike(largest) {
  const decimals = 3 - Math.floor(Math.log10(largest));
  return decimals >= 0 && decimals <= 6 ? (value) => value.toFixed(decimals) : number;
}

function showAnomalies() {
  const rows = ranked();
  const unit = isImage ? "Root mean square difference of pixels" : "Root mean square error of the columns, in deviations";
  const some = rows.length < data.count ? `, of ${rows.length.toLocaleString("en")} of ${counted(data.count, "sample")}` : "";
  byId("anomaly-note").textContent = `${unit}${some}.`;
  const written = alike(rows.length ? data.anomaly[rows[0]] : 0);
  for (const row of rows.slice(0, SHOWN_ANOMALIES)) {
    const button = make("button", { type: "button", className: "link" }, nameOf(row));
    button.addEventListener("click", () => { choose(row); byId("sample").scrollIntoView(); });
    byId("anomalies").tBodies[0].append(make(
      "tr",
      {},
      make("th", { scope: "row" }, button),
      make("td", { className: "num" }, written(data.anomaly[row])),
    ));
  }
  byId("anomalies-download").addEventListener("click", () => {
    const head = ["rank", "row", ...(record.names ? ["name"] : []), "distance_to_reconstruction"];
    const lines = rows.map((row, rank) => [rank + 1, row, ...(record.names ? [record.names[row]] : []), data.anomaly[row]]);
    download("anomalies.csv", [head, ...lines]);
  });
}
