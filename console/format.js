// Numbers, times and texts as people read them.
import { now } from "/console/server-time.js";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

// A span of time, in the largest unit of which there are at least two.
export function age(millis) {
  const span = Math.max(0, millis);
  if (span < 2 * MINUTE) return `${Math.round(span / SECOND)} s`;
  if (span < 2 * HOUR) return `${Math.floor(span / MINUTE)} min`;
  if (span < 2 * DAY) return `${Math.floor(span / HOUR)} h`;
  return `${Math.floor(span / DAY)} d`;
}

// A span exactly, of seconds: "1 d 6 h", "90 s" is "1 min 30 s".
export function span(seconds) {
  const parts = [];
  let rest = Math.max(0, Math.floor(seconds));
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]]) {
    const many = Math.floor(rest / size);
    rest -= many * size;
    if (many > 0) parts.push(`${many} ${unit}`);
  }
  return parts.join(" ") || "0 s";
}

export const count = (number) => Number(number).toLocaleString("en");

export function counted(number, one, many = `${one}s`) {
  return `${count(number)} ${Number(number) === 1 ? one : many}`;
}

// Events per second; null: not known yet.
export function rate(number) {
  if (number === null) return "–";
  if (number === 0) return "0";
  return number < 10 ? number.toFixed(1) : count(Math.round(number));
}

export function bytes(number) {
  const size = Number(number);
  if (size < 1024) return `${size} B`;
  if (size < 1024 * 1024) return `${(size / 1024).toFixed(size < 10240 ? 1 : 0)} KiB`;
  return `${(size / 1024 / 1024).toFixed(1)} MiB`;
}

// A point in time, in the browser's time zone.
export function when(millis) {
  return new Date(Number(millis)).toLocaleString("en-GB", {
    year: "numeric", month: "short", day: "numeric",
    hour: "2-digit", minute: "2-digit", second: "2-digit",
  });
}

// By the server's clock: how long ago something was, and how long it is until then.
export const since = (millis) => age(now() - Number(millis));
export const until = (millis) => age(Number(millis) - now());
export const ago = (millis) => `${since(millis)} ago`;

// Characters that change the direction of text, or that nobody sees: a name could use them to look
// like another one. They are shown by their number.
const HIDDEN = new RegExp("[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u061c"
  + "\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u2069\\ufeff]", "g");

export function seen(text) {
  return String(text).replace(HIDDEN, (letter) =>
    `‹U+${letter.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}›`);
}

export const nameOfArn = (arn) => String(arn).split(":").pop();
export const nameOfUrl = (url) => String(url).split("/").pop();
