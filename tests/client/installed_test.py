#!/usr/bin/env python3
"""Builds the example project from the installed libstanchion-dev and runs it against the server.

    installed_test.py --build build/release
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLE = HERE.parents[1] / "examples/cpp"
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "cli")]

from examples_test import Shop  # noqa: E402
from server import Server, clean_environment  # noqa: E402


def output(*command, **more):
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, **more)
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout}"
    return done.stdout


class Installed:
    """What is in the package, unpacked; the example as it was built from it."""

    def __init__(self, build, directory):
        self.build = pathlib.Path(build).resolve()
        directory = pathlib.Path(directory)
        output("cpack", "-G", "DEB", "-B", directory, cwd=self.build)
        self.package, = directory.glob("libstanchion-dev_*.deb")
        self.root = directory / "root"
        output("dpkg-deb", "-x", self.package, self.root)
        self.example = directory / "example"
        output("cmake", "-G", "Ninja", "-S", EXAMPLE, "-B", self.example,
               f"-DCMAKE_PREFIX_PATH={self.root / 'usr'}",
               "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wconversion -Wshadow -Wpedantic -Werror")
        output("cmake", "--build", self.example)


def the_example_runs_against_the_server(installed):
    with Server(str(installed.build / "stanchion"), "--in-memory", "--listen",
                "127.0.0.1:0") as server:
        said = output(installed.example / "hello",
                      env=clean_environment({"AWS_ENDPOINT_URL_SQS": server.url}))
    assert said == "sent 26\nreceived and deleted 26\n", said


def the_example_of_a_worker_handles_every_message(installed):
    with Server(str(installed.build / "stanchion"), "--in-memory", "--listen",
                "127.0.0.1:0") as server:
        said = output(installed.example / "work",
                      env=clean_environment({"AWS_ENDPOINT_URL_SQS": server.url}))
    assert said == "handled and deleted 20, given back 0\n", said


def the_example_of_the_guide_stores_every_order_once(installed):
    binary = str(installed.build / "stanchion")
    with Server(binary, "--in-memory", "--listen", "127.0.0.1:0") as server, \
            tempfile.TemporaryDirectory(prefix="stanchion-orders-") as directory:
        Shop(server, binary, directory, "cpp").serve([installed.example / "orders"])


def the_example_says_what_is_missing(installed):
    done = subprocess.run([installed.example / "hello"], text=True, capture_output=True,
                          env=clean_environment({"HOME": "/nowhere"}), check=False)
    assert done.returncode == 1, done
    assert done.stderr.startswith("InvalidSettings: no region is set"), done.stderr


def the_headers_are_whole_each_by_itself_and_name_nothing_internal(installed):
    include = installed.root / "usr/include"
    headers = sorted(path.relative_to(include) for path in include.rglob("*.h"))
    assert len(headers) >= 7, headers
    allowed = {str(header) for header in headers}
    for header in headers:
        quoted = re.findall(r'#include "([^"]+)"', (include / header).read_text())
        assert set(quoted) <= allowed, (header, quoted)
        output("g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++",
               "-I", include, "-include", include / header, os.devnull)


def the_first_examples_of_the_guides_compile(installed):
    for name in ["client.md", "worker.md"]:
        guide = (HERE.parents[1] / "docs" / name).read_text()
        code = re.search(r"```cpp\n(.*?)```", guide, re.DOTALL)[1]
        assert "int main()" in code, code
        output("g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++",
               "-I", installed.root / "usr/include", "-", input=code)


def the_archives_show_only_names_of_their_own(installed):
    for layer, known in [("client", "6Client4open"), ("worker", "6Worker4open")]:
        archive, = installed.root.rglob(f"libstanchion-{layer}.a")
        lines = [line.split() for line in
                 output("nm", "--defined-only", "--extern-only", archive).splitlines()]
        shown = [words[2] for words in lines if len(words) == 3]
        own = re.compile(rf"_ZNK?9stanchion6{layer}")
        assert any(known in name for name in shown), shown
        foreign = [name for name in shown if not own.match(name)]
        assert not foreign, (layer, foreign[:10])


def the_package_says_what_it_needs(installed):
    depends = output("dpkg-deb", "--field", installed.package, "Depends")
    assert "libssl-dev" in depends, depends
    size = installed.package.stat().st_size
    print(f"libstanchion-dev {size:,} bytes")
    assert size < 4_000_000, size


TESTS = [the_example_runs_against_the_server, the_example_of_a_worker_handles_every_message,
         the_example_of_the_guide_stores_every_order_once, the_example_says_what_is_missing,
         the_headers_are_whole_each_by_itself_and_name_nothing_internal,
         the_first_examples_of_the_guides_compile, the_archives_show_only_names_of_their_own,
         the_package_says_what_it_needs]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    options = parser.parse_args()
    good = bad = 0
    with tempfile.TemporaryDirectory(prefix="stanchion-installed-") as directory:
        installed = Installed(options.build, directory)
        for test in TESTS:
            try:
                test(installed)
                good += 1
            except (AssertionError, OSError, ValueError, RuntimeError) as error:
                bad += 1
                print(f"FAIL {test.__name__}: {error}")
    print(f"{good} passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
