// Which server, account and key this is: at the head of every page, and in questions before a queue
// is lost.
import { whereWeAre } from "/console/api.js";
import { h, replace } from "/console/dom.js";
import { seen } from "/console/format.js";

const LOOK_MILLIS = 15_000;

const place = document.getElementById("where");
let before = "";
let timer = 0;

// The address in the browser, and the machine that answers there: the same address may lead to
// another machine by a tunnel or a proxy.
function serverName({ machine }) {
  const elsewhere = machine && machine !== location.hostname;
  return elsewhere ? `${location.host} on ${seen(machine)}` : location.host;
}

function partsOf(here) {
  const key = here.user ? `${here.accessKeyId} of ${here.user}` : here.accessKeyId;
  return [["Key", key], ["Account", here.account], ["Region", here.region],
    ["Server", serverName(here)]].filter(([, value]) => value);
}

function tell(here) {
  const parts = partsOf(here);
  const now = JSON.stringify(parts);
  if (now !== before)
    replace(place, parts.map(([label, value]) => h("div", {}, h("dt", {}, label),
      h("dd", {}, h("bdi", {}, seen(value))))));
  before = now;
}

// Asks the server, and shows it; returns it in words.
export async function lookAround() {
  const here = await whereWeAre();
  tell(here);
  return partsOf(here).map(([label, value]) => `${label.toLowerCase()} ${seen(value)}`).join(", ");
}

// Another server may come to answer at the same address, and a key may be given to another account:
// this is asked again now and then. The answers also tell the server's time, which the browser
// cannot count by itself while the machine sleeps.
export function keepLookingAround() {
  clearInterval(timer);
  timer = setInterval(() => document.hidden || lookAround().catch(() => {}), LOOK_MILLIS);
}

// Who is not signed in sees only at which address.
export function forgetWhere() {
  clearInterval(timer);
  tell({});
}
