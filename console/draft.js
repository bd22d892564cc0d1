// A message on its way from where it was seen to the form that sends it again.

let draft = null;

// `queue`: { name, url, fifo } of where it was seen.
export function setDraft(message, queue) {
  draft = { message, queue };
}

export function takeDraft() {
  const taken = draft;
  draft = null;
  return taken;
}
