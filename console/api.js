// Calls of the API, as the signed-in key, and the stream of figures.
import { hearTime } from "/console/server-time.js";

export class Refused extends Error {
  constructor(status, code, message) {
    super(message || code || `The server answered with ${status}.`);
    this.status = status;
    this.code = code;
  }
}

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, {
      credentials: "same-origin", cache: "no-store", ...options,
      headers: { "X-Stanchion-Console": "1", ...options.headers },
    });
  } catch {
    throw new Refused(0, "", "The server does not answer. Is it still running?");
  }
  hearTime(Number(answer.headers.get("X-Stanchion-Time")));
  const text = await answer.text();
  let value = {};
  try {
    value = text ? JSON.parse(text) : {};
  } catch {
    // Not JSON: the status says enough.
  }
  if (answer.ok) return value;
  if (answer.status === 401) dispatchEvent(new Event("signed-out"));
  throw new Refused(answer.status, String(value.__type ?? "").split("#").pop(),
    value.message ?? value.Message);
}

const post = (path, headers, body) =>
  ask(path, { method: "POST", headers, body: JSON.stringify(body) });

const callOf = (target) => (action, parameters = {}) => post("/console/api", {
  "Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": `${target}.${action}`,
}, parameters);

export const call = callOf("AmazonSQS");
export const cloudwatch = callOf("GraniteServiceVersion20100801");
export const whereWeAre = () => ask("/console/here", { method: "GET" });
export const aboutServer = () => ask("/console/server", { method: "GET" });

const JSON_TYPE = { "Content-Type": "application/json" };
export const signIn = (id, secret) => post("/console/sign-in", JSON_TYPE, { id, secret });
export const signOut = () => post("/console/sign-out", JSON_TYPE, {});

const SILENCE_MILLIS = 4000;
const AGAIN_MILLIS = 2000;

// Calls `show` with each state of the queues that the query asks for, until the returned function
// is called. The browser connects again by itself unless it was refused; then we do. A tab that
// nobody looks at has no stream: a browser opens only a few connections to a server, and other tabs
// need them.
export function watch(query, show) {
  const given = Object.entries(query).filter(([, value]) => value);
  const path = `/console/events?${new URLSearchParams(given)}`;
  let source = null;
  let heard = 0;
  const connect = () => {
    source?.close();
    heard = performance.now();
    source = new EventSource(path);
    source.onmessage = (event) => {
      heard = performance.now();
      tellConnection("");
      const told = JSON.parse(event.data);
      hearTime(told.now);
      show(told);
    };
  };
  const turn = () => {
    if (!document.hidden) connect();
    else source?.close();
  };
  const look = async () => {
    const open = source?.readyState === EventSource.OPEN;
    if (open || document.hidden || performance.now() - heard < SILENCE_MILLIS) return;
    tellConnection("No live figures: trying again …");
    if (source?.readyState === EventSource.CONNECTING) return;
    // The stream does not say why it was refused; a call does, and may ask for a sign-in.
    try {
      await call("ListQueues", { MaxResults: 1 });
      connect();
    } catch {
      // Asked again at the next look.
    }
  };
  turn();
  document.addEventListener("visibilitychange", turn);
  const timer = setInterval(look, AGAIN_MILLIS);
  return () => {
    document.removeEventListener("visibilitychange", turn);
    clearInterval(timer);
    source?.close();
    tellConnection("");
  };
}

function tellConnection(text) {
  const place = document.getElementById("connection");
  if (place.textContent !== text) place.textContent = text;
}
