// The hash of the URL names what is shown: #/queue/orders/messages?search=boots

export function parse(hash) {
  const [path, search = ""] = (hash || "#/queues").replace(/^#\/?/, "").split("?");
  const [page, name, tab] = path.split("/").map(decoded);
  return { page: page || "queues", name, tab: tab ?? "", query: new URLSearchParams(search) };
}

// A URL may have been cut or typed by hand.
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function link(page, name = "", tab = "", query = {}) {
  const given = Object.entries(query).filter(([, value]) => value);
  const search = given.length ? `?${new URLSearchParams(given)}` : "";
  return `#/${[page, name, tab].filter(Boolean).map(encodeURIComponent).join("/")}${search}`;
}

// Notes in the URL how the page is set, without a new entry in the browser's history.
export function note(query) {
  const { page, name, tab } = parse(location.hash);
  history.replaceState(null, "", link(page, name, tab, query));
}
