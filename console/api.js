// Calls of the API, as the signed-in key, and the stream of figures.

export class Refused extends Error {
  constructor(status, code, message) {
    super(message || code || `The server answered with ${status}.`);
    this.status = status;
    this.code = code;
  }
}

async function post(path, headers, body) {
  let answer;
  try {
    answer = await fetch(path, {
      method: "POST", credentials: "same-origin", cache: "no-store",
      headers: { "X-Stanchion-Console": "1", ...headers }, body: JSON.stringify(body),
    });
  } catch {
    throw new Refused(0, "", "The server does not answer. Is it still running?");
  }
  const text = await answer.text();
  let value = {};
  try { value = text ? JSON.parse(text) : {}; } catch { /* Not JSON: the status says enough. */ }
  if (!answer.ok)
    throw new Refused(answer.status, String(value.__type ?? "").split("#").pop(), value.message);
  return value;
}

export const call = (action, parameters = {}) => post("/console/api", {
  "Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": `AmazonSQS.${action}`,
}, parameters);

export const signIn = (id, secret) =>
  post("/console/sign-in", { "Content-Type": "application/json" }, { id, secret });
export const signOut = () => post("/console/sign-out", { "Content-Type": "application/json" }, {});

// Calls `show` with each state of the queues that the query asks for, until the returned function
// is called. The browser connects again by itself.
export function watch(query, show) {
  const source = new EventSource(`/console/events?${new URLSearchParams(query)}`);
  source.onmessage = (event) => show(JSON.parse(event.data));
  return () => source.close();
}
