// Packed arrays: base64 of deflated bytes, with how they are to be read.

const KINDS = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array };
const MISSING = 65535;

function bytesOf(text) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i += 1) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

async function unpack(part) {
  const inflated = new Blob([bytesOf(part.data)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new KINDS[part.type](await new Response(inflated).arrayBuffer());
}

// The columns of a quantised table, as numbers; what is missing is NaN.
async function unpackColumns(part) {
  const stored = await unpack(part);
  const [columns, rows] = part.shape;
  return Array.from({ length: columns }, (_, column) => {
    const numbers = new Float32Array(rows);
    for (let row = 0; row < rows; row += 1) {
      const place = stored[column * rows + row];
      numbers[row] = place === MISSING ? NaN : part.low[column] + part.step[column] * place;
    }
    return numbers;
  });
}
