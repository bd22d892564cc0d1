// The console: shows the page that the URL names, and asks for a key where the server wants one.
import { advicePage } from "/console/advice.js";
import { signOut } from "/console/api.js";
import { createPage } from "/console/create.js";
import { deadLettersPage } from "/console/dead-letters.js";
import { h, problem, replace } from "/console/dom.js";
import { queuePage } from "/console/queue.js";
import { queuesPage } from "/console/queues.js";
import { parse } from "/console/route.js";
import { serverPage } from "/console/server.js";
import { askForKey } from "/console/sign-in.js";
import { forgetWhere, keepLookingAround, lookAround } from "/console/where.js";

const PAGES = {
  queues: { show: queuesPage, title: "Queues" },
  create: { show: createPage, title: "Create a queue", under: "queues" },
  queue: { show: queuePage, under: "queues" },
  "dead-letters": { show: deadLettersPage, title: "Dead letters" },
  advice: { show: advicePage, title: "Advice" },
  server: { show: serverPage, title: "Server" },
};

const main = document.getElementById("main");
const out = document.getElementById("sign-out");
let shown = null;  // { page, name, leave, route }

function leave() {
  shown?.leave?.();
  shown = null;
}

function tellWhere({ page, name, tab }) {
  const known = PAGES[page];
  for (const one of document.querySelectorAll("header nav a")) {
    if (one.hash === `#/${known.under ?? page}`) one.setAttribute("aria-current", "page");
    else one.removeAttribute("aria-current");
  }
  document.title = [name, tab, known.title, location.host, "Stanchion"].filter(Boolean)
    .join(" · ");
}

function show() {
  const route = parse(location.hash);
  if (!PAGES[route.page] || (route.page === "queue" && !route.name)) route.page = "queues";
  tellWhere(route);
  // Another tab of the same page: what is around it stays, and so does the focus.
  if (shown?.route && shown.page === route.page && shown.name === route.name)
    return shown.route(route);
  const moved = shown !== null;
  leave();
  shown = { ...PAGES[route.page].show(main, route), page: route.page, name: route.name };
  scrollTo(0, 0);
  // Not at the first page: there the keyboard begins at the top, with the link to the content.
  if (moved && !main.contains(document.activeElement)) main.focus({ preventScroll: true });
  return undefined;
}

function signedOut() {
  leave();
  forgetWhere();
  out.hidden = true;
  document.title = `Sign in · ${location.host} · Stanchion`;
  askForKey(main, begin);
}

async function begin() {
  try {
    await lookAround();
  } catch (error) {
    if (error.status === 401) return undefined;  // The event below asks for a key.
    return replace(main, h("h1", {}, "Stanchion"), problem(error));
  }
  keepLookingAround();
  out.hidden = !document.cookie.includes("stanchion_signed_in");
  return show();
}

out.addEventListener("click", async () => {
  await signOut();
  signedOut();
});
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();  // The hash names the page.
  main.focus();
});
addEventListener("signed-out", signedOut);
addEventListener("hashchange", () => {
  if (document.title.startsWith("Sign in")) begin();
  else show();
});
begin();
