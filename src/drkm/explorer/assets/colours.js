// Colours of the map: one lightness scale for numbers, one palette for classes, both for all kinds of colour vision.

const dark = matchMedia("(prefers-color-scheme: dark)");

function packColour(red, green, blue) {
  return (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0;
}

// Shares of red, green and blue light from lightness, chroma and hue of the OKLab space, in which equal steps look equal.
function lightOf(lightness, chroma, hue) {
  const a = chroma * Math.cos(hue);
  const b = chroma * Math.sin(hue);
  const long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const short = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
    -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
    -0.0041960863 * long - 0.7034186147 * middle + 1.707614701 * short,
  ];
}

// A colour of this lightness and hue, as strong as asked for, or as screens can show it.
function fromOklch(lightness, chroma, hue) {
  let light = lightOf(lightness, chroma, hue);
  for (let weaker = chroma; weaker > 0 && light.some((share) => share < 0 || share > 1); weaker -= 0.004) {
    light = lightOf(lightness, weaker, hue);
  }
  return light.map((share) => {
    const kept = Math.min(1, Math.max(0, share));
    return Math.round(255 * (kept <= 0.0031308 ? 12.92 * kept : 1.055 * kept ** (1 / 2.4) - 0.055));
  });
}

// From dark blue over green to yellow: lightness rises evenly, hue goes with it.
function scaleColour(share) {
  const [low, high] = dark.matches ? [0.46, 0.93] : [0.3, 0.86];
  const hue = ((275 - 175 * share) * Math.PI) / 180;
  return fromOklch(low + (high - low) * share, 0.12, hue);
}

function hexColour(text) {
  return [1, 3, 5].map((place) => parseInt(text.slice(place, place + 2), 16));
}

function classColour(index, palette) {
  const colour = hexColour(palette[index % palette.length]);
  if (!dark.matches) return colour;
  // On dark paper black is white, and all others are a little lighter.
  return colour.every((part) => part < 40) ? [235, 235, 235] : colour.map((part) => Math.round(part + 0.2 * (255 - part)));
}

const cssColour = ([red, green, blue]) => `rgb(${red} ${green} ${blue})`;

// Asked for once per scheme: to compute styles while a drag is drawn takes longer than to draw it.
const themeColours = new Map();

function themeColour(name) {
  const key = `${name} ${dark.matches}`;
  if (!themeColours.has(key)) {
    themeColours.set(key, hexColour(getComputedStyle(document.documentElement).getPropertyValue(name).trim()));
  }
  return themeColours.get(key);
}

// Less than zero is blue, more is vermilion, as in the palette.
function differenceColour(share) {
  const end = share < 0 ? [0, 114, 178] : [213, 94, 0];
  const middle = dark.matches ? [29, 35, 42] : [255, 255, 255];
  const part = Math.min(1, Math.abs(share));
  return middle.map((from, i) => Math.round(from + (end[i] - from) * part));
}
