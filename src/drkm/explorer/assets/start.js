// The page begins here.

function showHead() {
  const { model } = record;
  byId("title").textContent = record.title;
  const shown = record.training ? counted(data.count, "training sample") : counted(data.count, "new sample");
  const sizes = model.layers.map((layer) => layer.components);
  const last = counted(sizes.pop(), "component");
  const layers = sizes.length ? `${sizes.join(", ")} and ${last}` : last;
  byId("lead").textContent = `${shown} of a ConstrDRKM with ${layers}, trained on ${counted(model.samples, "sample")}.`;
  byId("footer").textContent = `Made by drkm ${record.version}. Codes are shown in units of n^(−1/2). ${
    data.live ? "Live: the model decodes what you ask for, on this machine alone." : "This page is one file and needs no network."}`;
  byId("overlay").setAttribute("aria-label", `Map of ${counted(data.count, "sample")} by two codes`);
}

async function start() {
  try {
    showHead();
    byId("main").classList.toggle("tables", !isImage);
    await unpackAll();
    startMap();
    startGestures();
    startSample();
    startTraverse();
    startModel();
    choose(data.bases[0].row);
    byId("main").removeAttribute("aria-busy");
  } catch (error) {
    byId("failure").textContent = `This page cannot be shown: ${error.message}`;
    byId("failure").hidden = false;
    throw error;
  }
}

start();
