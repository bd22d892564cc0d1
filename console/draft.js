// A message on its way from where it was seen to the form that sends it again.

let draft = null;

export function setDraft(message) {
  draft = message;
}

export function takeDraft() {
  const taken = draft;
  draft = null;
  return taken;
}
