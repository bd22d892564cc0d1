// The server's time. Ages are computed by it: the browser's clock may be wrong or be set while a
// page is open, and the server's may have been moved (--virtual-time). Between two messages of the
// server, time goes on by the browser's steady clock.

// How far the server's time is ahead of the steady clock, in milliseconds; the browser's own idea
// until the server has said anything.
let ahead = performance.timeOrigin;

// The server says that it is this late now.
export function hearTime(millis) {
  if (Number.isFinite(millis) && millis > 0) ahead = millis - performance.now();
}

// In milliseconds since 1970.
export const now = () => ahead + performance.now();
