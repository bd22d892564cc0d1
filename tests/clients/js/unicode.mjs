// The texts of support/unicode.py, read from there so that every client gets the same.
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const program = "import json; from support.unicode import *; print(json.dumps([TEXTS, FORBIDDEN]))";

export const [texts, forbidden] = JSON.parse(execFileSync("python3", ["-B", "-c", program], {
  cwd: fileURLToPath(new URL("..", import.meta.url)),
}));
