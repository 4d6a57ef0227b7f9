// Elements, numbers and files. Text from data becomes text here, never markup.

const byId = (id) => document.getElementById(id);

function make(name, properties, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties ?? {})) {
    if (key in node && !key.includes("-")) node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function draw(name, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes ?? {})) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// A long name may go on in the next line after marks that join its words.
function breakable(text) {
  return text.split(/(?<=[_\/.-])/).flatMap((part, i) => (i ? [make("wbr"), part] : [part]));
}

function number(value) {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-3) return value.toExponential(2).replaceAll("-", "−");
  const digits = Math.max(0, 3 - Math.floor(Math.log10(size)));
  return String(Number(value.toFixed(Math.min(digits, 6)))).replace("-", "−");
}

// Two decimals, and no sign before a zero.
const hundredths = (value) => value.toFixed(2).replace(/^-(?=0\.00$)/, "").replace("-", "−");

// Deviations, with their sign.
function signed(value) {
  const text = hundredths(value);
  return value > 0 && text !== "0.00" ? `+${text}` : text;
}

// Text whose parts between backticks are code.
const withCode = (text) => text.split("`").map((part, i) => (i % 2 ? make("code", {}, part) : part));

const percent = (share) => `${Number((100 * share).toPrecision(3))} %`;

const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

function csvField(value) {
  const text = String(value ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function download(name, rows) {
  const text = rows.map((row) => row.map(csvField).join(",")).join("\r\n") + "\r\n";
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// Changes that several parts of the page follow: topics with those who listen.
const listeners = new Map();

function listen(topic, call) {
  listeners.set(topic, [...(listeners.get(topic) ?? []), call]);
}

function tell(topic) {
  for (const call of listeners.get(topic) ?? []) call();
}
