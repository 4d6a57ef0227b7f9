// Images from their pixels.

function imageData(pixels, offset, [height, width, channels], gain = 1) {
  const image = new ImageData(width, height);
  for (let i = 0; i < height * width; i += 1) {
    for (let c = 0; c < 3; c += 1) {
      image.data[4 * i + c] = gain * pixels[offset + i * channels + (channels === 1 ? 0 : c)];
    }
    image.data[4 * i + 3] = 255;
  }
  return image;
}

function differenceData(first, second, [height, width, channels], gain = 1) {
  const image = new ImageData(width, height);
  for (let i = 0; i < height * width; i += 1) {
    let sum = 0;
    for (let c = 0; c < channels; c += 1) {
      sum += second[i * channels + c] - first[i * channels + c];
    }
    image.data.set([...differenceColour((gain * sum) / channels / 160), 255], 4 * i);
  }
  return image;
}

function picture(image, label) {
  const canvas = make("canvas", { width: image.width, height: image.height, className: "picture" });
  canvas.getContext("2d").putImageData(image, 0, 0);
  if (label) {
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", label);
  } else canvas.setAttribute("aria-hidden", "true");
  return canvas;
}

function captioned(canvas, caption) {
  return make("figure", {}, canvas, make("figcaption", {}, caption));
}
