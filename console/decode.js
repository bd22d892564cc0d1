// Bodies as people read them: JSON laid out, base64 and gzip decoded.

const DECODED_MAX = 16 * 1024 * 1024;
// A line is indented by its depth, so that deep JSON becomes much longer by its layout: 32 KB of
// brackets would become half a gigabyte.
const LAYOUT_CHARACTERS_MAX = 256 * 1024;
const LAYOUT_DEPTH_MAX = 100;
const LAID_OUT_MAX = 1024 * 1024;

// Lays JSON out without changing a token: a parser would lose digits of large numbers, and the
// order of some keys. Text that is not JSON is returned as it is, and so is what is too long, or
// too deep for anybody to read.
export function laidOut(text) {
  if (text.length > LAYOUT_CHARACTERS_MAX) return text;
  try {
    const value = JSON.parse(text);
    if (value === null || typeof value !== "object") return text;
  } catch {
    return text;
  }
  const tokens = text.match(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  const out = [];
  let depth = 0;
  let size = 0;
  let last = "";
  for (const token of tokens) {
    const closes = token === "}" || token === "]";
    const opened = last === "{" || last === "[";
    if (closes) depth -= 1;
    const begins = closes ? !opened : opened || last === ",";
    const line = begins ? `\n${"  ".repeat(depth)}` : "";
    out.push(line, token === ":" ? ": " : token);
    size += line.length + token.length;
    if (token === "{" || token === "[") depth += 1;
    if (depth > LAYOUT_DEPTH_MAX || size > LAID_OUT_MAX) return text;
    last = token;
  }
  return out.join("");
}

export const isJson = (text) => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

export const looksLikeBase64 = (text) => text.length >= 8 && text.length % 4 === 0
  && /^[A-Za-z0-9+/]*={0,2}$/.test(text);

// What is behind base64 and gzip, as text; throws if the text is not base64.
export async function decoded(text) {
  const packed = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const gzip = packed[0] === 0x1f && packed[1] === 0x8b;
  const blob = new Blob([packed]);
  if (!gzip) return laidOut(await blob.text());
  return laidOut(await readText(blob.stream().pipeThrough(new DecompressionStream("gzip"))));
}

// A few bytes may unpack to gigabytes: no more than a limit of them is read.
async function readText(stream) {
  const reader = stream.getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    size += value.length;
    if (size > DECODED_MAX) {
      await reader.cancel();
      parts.push(new TextEncoder().encode(" … (there is more)"));
      break;
    }
  }
  return new Blob(parts).text();
}
