#!/usr/bin/env python3
"""Does what README.md says, block by block, and compares what comes out with what it shows.

    readme_test.py --binary build/release/stanchion

A block of `sh` that starts a server starts one, for the blocks behind it, on a port and with a data
directory of its own; other blocks of `sh`, `python` and `js` are run against it. A block of `text`
behind one of these is what it prints: each line of it must come, in this order. A block of `toml`
is a configuration. There are no other blocks.
"""
import argparse
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
URL_IN_README = "http://127.0.0.1:9324"
DATA_IN_README = "stanchion-data"
SECONDS_MAX = 120


class Reader:
    """A reader who tries the README's commands in a shell."""

    def __init__(self, binary, directory):
        self.binary = str(pathlib.Path(binary).resolve())
        self.directory = pathlib.Path(directory)
        self.server = None
        self.url = None
        self.printed = None
        self.complaints = ""

    def do(self, language, text):
        getattr(self, f"do_{language}")(text)

    def run(self, command, **more):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("AWS_", "STANCHION_"))}
        environment |= {"AWS_PAGER": "", "AWS_CONFIG_FILE": "/dev/null", "NO_PROXY": "*",
                        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
                        "AWS_EC2_METADATA_DISABLED": "true", "PYTHONDONTWRITEBYTECODE": "1"}
        # Apart, since a complaint may end up in the middle of a line that is looked for.
        done = subprocess.run(command, cwd=self.directory, env=environment, text=True, check=False,
                              capture_output=True, timeout=SECONDS_MAX, **more)
        assert done.returncode == 0, \
            f"it ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        self.printed, self.complaints = done.stdout, done.stderr

    def here(self, text):
        """The text with the address, program and directory of this test."""
        text = text.replace(URL_IN_README, self.url or URL_IN_README)
        return text.replace("build/release/stanchion", self.binary)

    def do_sh(self, text):
        lines = text.splitlines()
        if lines == ["make serve"]:
            # The command would install and build; the last line of its plan is what it starts in
            # the end.
            plan = subprocess.run(["make", "--dry-run", "--no-print-directory", "serve"], cwd=ROOT,
                                  check=True, capture_output=True, text=True).stdout
            assert plan.splitlines()[-1] == \
                f"build/release/stanchion serve --data ./{DATA_IN_README}", plan
            self.start(["--data", DATA_IN_README])
        elif text.startswith("build/release/stanchion serve"):
            assert len(lines) == 1, lines
            self.start(shlex.split(text)[2:])
        else:
            script = "set -e\nshopt -s expand_aliases\n" + self.here(text)
            self.run(["bash", "-c", script])

    def do_python(self, text):
        self.run(["/usr/bin/python3", "-c", self.here(text)])

    def do_js(self, text):
        modules = self.directory / "node_modules"
        if not modules.exists():
            modules.symlink_to(ROOT / "tests/clients/js/node_modules")
        (self.directory / "snippet.mjs").write_text(self.here(text))
        self.run(["node", "snippet.mjs"])

    def do_toml(self, text):
        (self.directory / "stanchion.toml").write_text(text)
        self.run([self.binary, "check-config", "stanchion.toml"])
        (self.directory / "stanchion.toml").unlink()

    def do_text(self, text):
        assert self.printed is not None, "nothing was run before"
        rest = self.printed.splitlines()
        for line in self.here(text).splitlines():
            # The order of members, and so a comma after one, depends on the client.
            found = [i for i, said in enumerate(rest) if said.rstrip(",") == line]
            assert found, f"{line!r} is not in, or not in this order:\n" \
                f"{self.printed}{self.complaints}"
            rest = rest[found[0] + 1:]
        self.printed = None

    def start(self, options):
        self.stop()
        self.server = subprocess.Popen([self.binary, "serve", "--listen", "127.0.0.1:0", *options],
                                       cwd=self.directory, stdout=subprocess.PIPE, text=True)
        for line in self.server.stdout:
            if line.startswith("ready "):
                self.url = line.split()[1]
                return
        raise AssertionError("the server did not start")

    def stop(self):
        if self.server is None:
            return
        self.server.send_signal(signal.SIGTERM)
        self.server.stdout.read()
        status = self.server.wait(30)
        self.server = None
        assert status == 0, f"the server ended with {status}"


def links(text):
    return re.findall(r"\]\((?!https?:)([^)#]+)", text)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/release/stanchion")
    readme = (ROOT / "README.md").read_text()
    good = bad = 0
    with tempfile.TemporaryDirectory(prefix="stanchion-readme-") as directory:
        reader = Reader(parser.parse_args().binary, directory)
        for match in BLOCK.finditer(readme):
            line = readme.count("\n", 0, match.start()) + 1
            try:
                reader.do(*match.groups())
                good += 1
            except (AssertionError, AttributeError, OSError, subprocess.SubprocessError) as error:
                bad += 1
                print(f"FAIL README.md:{line}: {error}")
        reader.stop()
    for link in links(readme):
        good, bad = (good + 1, bad) if (ROOT / link).exists() else (good, bad + 1)
        if not (ROOT / link).exists():
            print(f"FAIL README.md: there is no {link}")
    print(f"{good} passed, {bad} failed")
    return 1 if bad or not good else 0


if __name__ == "__main__":
    sys.exit(main())
