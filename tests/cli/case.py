"""What the tests of the real program share: two accounts, checks, a directory of their own, and how
they are run."""
import argparse
import pathlib
import shutil
import tempfile
import time
import traceback

from server import Server, run, write
from signed_client import Key, Refused

ALICE = Key("AKIAALICE", "alice's secret/+=1")
BOB = Key("AKIABOB", "bob-secret-0123456789")
ACCOUNTS = f"""
[[account]]
id = "111111111111"
[[account.key]]
id = "{ALICE.id}"
secret = "{ALICE.secret}"

[[account]]
id = "222222222222"
[[account.key]]
id = "{BOB.id}"
secret = "{BOB.secret}"
"""
IN_MEMORY = '[server]\nlisten = "127.0.0.1:0"\nin_memory = true\nthreads = 1\n'


def check(condition, detail=""):
    if not condition:
        raise AssertionError(detail)


def refused(call, *arguments, **parameters):
    """The error that the call is answered with."""
    try:
        reply = call(*arguments, **parameters)
    except Refused as error:
        return error
    raise AssertionError(f"was not refused but answered with {reply}")


class Case:
    """One test's own directory and shortcuts."""

    def __init__(self, binary, directory):
        self.binary, self.directory = binary, pathlib.Path(directory)

    def file(self, name, text):
        return write(self.directory / name, text)

    def run(self, *arguments, **more):
        return run(self.binary, *arguments, cwd=self.directory, **more)

    def serve(self, *arguments, **more):
        return Server(self.binary, *arguments, cwd=self.directory, **more)

    def serve_config(self, text, *arguments, **more):
        return self.serve("--config", self.file("s.toml", text), *arguments, **more)


def tests_of(names):
    """The functions among these that take a case and nothing else."""
    return [value for value in list(names.values())
            if callable(value) and getattr(value, "__code__", None)
            and value.__code__.co_varnames[:value.__code__.co_argcount] == ("case",)]


def run_tests(tests, description, make_case=Case, skipped=0):
    """Runs the cases that the command line names, or all; returns the exit status."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--binary", default="build/release/stanchion")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    binary = str(pathlib.Path(options.binary).resolve())
    good = bad = 0
    for test in tests:
        if options.names and test.__name__ not in options.names:
            continue
        directory = tempfile.mkdtemp(prefix="stanchion-")
        began = time.time()
        try:
            test(make_case(binary, directory))
            good += 1
            print(f"ok   {test.__name__} ({time.time() - began:.1f} s)", flush=True)
        except Exception:  # noqa: BLE001: whatever goes wrong is a failed test
            bad += 1
            print(f"FAIL {test.__name__}\n{traceback.format_exc()}", flush=True)
        shutil.rmtree(directory, ignore_errors=True)
    print(f"{good} passed, {bad} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if bad or not good else 0
