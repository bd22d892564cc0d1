"""What the tests of the real program share: two accounts, checks, and a directory of their own."""
import pathlib

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
