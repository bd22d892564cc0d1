// The console: shows the page that the URL names, and asks for a key where the server wants one.
import { call, signIn, signOut } from "/console/api.js";
import { advicePage } from "/console/advice.js";
import { field, h, problem, replace } from "/console/dom.js";
import { queuePage } from "/console/queue.js";
import { queuesPage } from "/console/queues.js";

const main = document.getElementById("main");
const out = document.getElementById("sign-out");
let leave = () => {};

function show() {
  leave();
  const [, page, name] = (location.hash || "#/queues").split("/");
  for (const link of document.querySelectorAll("nav a"))
    link.toggleAttribute("aria-current", link.hash === `#/${page}`);
  if (page === "queue" && name) leave = queuePage(main, decodeURIComponent(name));
  else if (page === "advice") leave = advicePage(main);
  else leave = queuesPage(main);
  document.title = `${name ? decodeURIComponent(name) : page} · Stanchion`;
  main.focus({ preventScroll: true });
}

function askForKey(error) {
  leave();
  leave = () => {};
  const id = h("input", { required: true, autocomplete: "username", id: "key-id" });
  const secret = h("input", { required: true, type: "password", autocomplete: "current-password", id: "key-secret" });
  const errors = h("div", {}, error ? problem(error) : "");
  const submit = async (event) => {
    event.preventDefault();
    try { await signIn(id.value.trim(), secret.value); begin(); } catch (refused) { replace(errors, problem(refused)); }
  };
  replace(main, h("h1", {}, "Sign in"), h("form", { onsubmit: submit }, h("div", { class: "bar" },
    field("Access key id", id), field("Secret access key", secret), h("button", { class: "main" }, "Sign in"))), errors);
  id.focus();
}

async function begin() {
  try {
    await call("ListQueues", { MaxResults: 1 });
  } catch (error) {
    if (error.status === 401) return askForKey();
    return replace(main, problem(error));
  }
  out.hidden = !document.cookie.includes("stanchion_signed_in");
  return show();
}

out.addEventListener("click", async () => { await signOut(); out.hidden = true; askForKey(); });
addEventListener("hashchange", show);
begin();
