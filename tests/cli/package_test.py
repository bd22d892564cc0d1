#!/usr/bin/env python3
"""Builds the Debian package, unpacks it, runs what is in it, and installs it.

    package_test.py --build build/release
"""
import argparse
import gzip
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
NOT_PERMITTED = 77
BINARY_SIZE_MAX = 40_000_000
# The libraries of a bare Debian, and the loader.
LIBRARIES = {"linux-vdso.so.1", "libc.so.6", "libm.so.6"}


def output(*command, **more):
    return subprocess.run(command, check=True, text=True, capture_output=True, **more).stdout


def make_package(build, directory):
    output("cpack", "-G", "DEB", "-B", str(directory), cwd=build)
    packages = list(pathlib.Path(directory).glob("stanchion_*.deb"))
    assert len(packages) == 1, packages
    return packages[0]


def the_package_depends_on_the_c_library_alone(package, root):
    depends = output("dpkg-deb", "--field", package, "Depends").strip()
    assert re.fullmatch(r"libc6 \([^)]*\)", depends), depends


def the_binary_runs_and_is_small(package, root):
    binary = root / "usr/bin/stanchion"
    assert output(binary, "--version").startswith("stanchion ")
    assert binary.stat().st_size < BINARY_SIZE_MAX, binary.stat().st_size
    linked = {line.split()[0] for line in output("ldd", binary).splitlines()}
    assert all(name in LIBRARIES or "ld-linux" in name for name in linked), linked
    print(f"package {package.stat().st_size:,} bytes, program {binary.stat().st_size:,} bytes")


def the_example_of_settings_is_valid_and_not_for_everybody(package, root):
    settings = root / "etc/stanchion/stanchion.toml"
    said = output(root / "usr/bin/stanchion", "check-config", settings)
    assert said.endswith("is fine: 0 accounts, 0 queues\n"), said
    assert settings.stat().st_mode & 0o007 == 0, oct(settings.stat().st_mode)
    conffiles = output("dpkg-deb", "--info", package, "conffiles")
    assert conffiles == "/etc/stanchion/stanchion.toml\n", conffiles


def the_unit_is_one_that_systemd_understands(package, root):
    unit = root / "usr/lib/systemd/system/stanchion.service"
    assert unit.exists()
    if not shutil.which("systemd-analyze"):
        return
    here = unit.with_name("stanchion-here.service")
    here.write_text(unit.read_text().replace("/usr/bin/stanchion", f"{root}/usr/bin/stanchion"))
    said = subprocess.run(["systemd-analyze", "verify", "--man=no", here], text=True,
                          capture_output=True, check=False).stderr
    complaints = [line for line in said.splitlines() if "stanchion" in line]
    assert not complaints, complaints


def the_documentation_is_there(package, root):
    for name in ("configuration.md", "operations.md", "compatibility.md", "metrics.md", "work.md",
                 "console.md", "pictures/queues.png", "CHANGELOG.md", "copyright"):
        assert (root / "usr/share/doc/stanchion" / name).stat().st_size > 0, name


def every_licence_that_is_named_has_its_text(package, root):
    paragraphs = (root / "usr/share/doc/stanchion/copyright").read_text().split("\n\n")
    texts, named = set(), set()
    for paragraph in paragraphs:
        licence = re.search(r"^License: (.*)$", paragraph, re.MULTILINE)
        if paragraph.startswith("License: "):
            texts.add(licence[1])
        elif licence:
            assert "\nCopyright: " in paragraph, paragraph
            named |= set(licence[1].split(" and "))
    assert named == texts, named ^ texts


def the_manual_page_and_the_completions_are_those_of_the_program(package, root):
    binary = root / "usr/bin/stanchion"
    with gzip.open(root / "usr/share/man/man1/stanchion.1.gz", "rt") as page:
        assert page.read() == output(binary, "help", "--man")
    for shell, path in (("bash", "bash-completion/completions/stanchion"),
                        ("zsh", "zsh/vendor-completions/_stanchion"),
                        ("fish", "fish/vendor_completions.d/stanchion.fish")):
        installed = (root / "usr/share" / path).read_text()
        assert installed == output(binary, "completion", shell), path
    if shutil.which("man"):
        shown = output("man", "--local-file", "--warnings", "--encoding=utf8",
                       root / "usr/share/man/man1/stanchion.1.gz",
                       env={"MANWIDTH": "80", "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"})
        assert "--limits-connections" in shown and "EXIT STATUS" in shown, shown


def the_image_starts_as_its_file_says(package, root):
    """The command lines of the Dockerfile, without Docker: the variables, the directory and the
    user's rights of the image, and what `docker run` adds by -e and -v."""
    dockerfile = (HERE.parents[1] / "packaging/Dockerfile").read_text()
    image = dict(re.findall(r"(STANCHION_[A-Z]+)=(\S+)", re.search(r"^ENV (STANCHION.*)$", dockerfile,
                                                                   re.MULTILINE)[1]))
    command = [*json.loads(re.search(r"^ENTRYPOINT (.*)$", dockerfile, re.MULTILINE)[1]),
               *json.loads(re.search(r"^CMD (.*)$", dockerfile, re.MULTILINE)[1])]
    assert command == ["stanchion", "serve"], command
    check = json.loads(re.search(r"^HEALTHCHECK .*CMD (.*)$", dockerfile, re.MULTILINE)[1])
    runs = re.findall(r"docker run ((?:.*\\\n)*.*)", dockerfile)
    assert len(runs) >= 2, runs
    for run in runs:
        words = shlex.split(run.replace("\\\n", " ").replace("\n#", " "))
        assert words[-1] == "stanchion", words
        with tempfile.TemporaryDirectory(prefix="stanchion-image-") as volume:
            environment = {"PATH": f"{root / 'usr/bin'}:/usr/bin:/bin", **image,
                           **dict(word.split("=", 1) for before, word in zip(words, words[1:])
                                  if before == "-e")}
            # The published port may be taken on this machine.
            environment["STANCHION_LISTEN"] = environment["STANCHION_LISTEN"].split(":")[0] + ":0"
            environment["STANCHION_DATA"] = volume + environment["STANCHION_DATA"]
            if any("/etc/stanchion" in word for word in words):
                settings = pathlib.Path(volume) / "stanchion.toml"
                settings.write_text(SETTINGS_OF_THE_IMAGE)
                environment["STANCHION_CONFIG"] = str(settings)
            server = subprocess.Popen(command, env=environment, cwd=volume, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            said = [server.stdout.readline() for _ in range(3)]
            assert said[2].startswith("ready http://0.0.0.0:"), (run, said, server.communicate())
            environment["STANCHION_LISTEN"] = said[2].split()[1].removeprefix("http://")
            healthy = subprocess.run(check, env=environment, cwd=volume, check=False,
                                     capture_output=True)
            server.terminate()
            server.communicate(timeout=30)
            assert (healthy.returncode, server.returncode) == (0, 0), run


def it_installs_runs_upgrades_and_leaves_the_data(package, root):
    done = subprocess.run([HERE / "install_in_overlay", package], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode == NOT_PERMITTED:
        print("skip installing: this machine does not permit namespaces or overlays")
        return
    assert done.returncode == 0, f"ended with {done.returncode}\n{done.stdout}"


SETTINGS_OF_THE_IMAGE = """
[[account]]
id = "123456789012"
[[account.key]]
id = "AKIAEXAMPLE"
secret = "wJalrXUtnFEMI"
"""

TESTS = [the_package_depends_on_the_c_library_alone, the_binary_runs_and_is_small,
         the_example_of_settings_is_valid_and_not_for_everybody,
         the_unit_is_one_that_systemd_understands, the_documentation_is_there,
         every_licence_that_is_named_has_its_text,
         the_manual_page_and_the_completions_are_those_of_the_program,
         the_image_starts_as_its_file_says, it_installs_runs_upgrades_and_leaves_the_data]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    options = parser.parse_args()
    good = bad = 0
    with tempfile.TemporaryDirectory(prefix="stanchion-package-") as directory:
        package = make_package(options.build, directory)
        root = pathlib.Path(directory) / "root"
        output("dpkg-deb", "-x", package, root)
        for test in TESTS:
            try:
                test(package, root)
                good += 1
            except (AssertionError, OSError, subprocess.CalledProcessError) as error:
                bad += 1
                print(f"FAIL {test.__name__}: {error}")
    print(f"{good} passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
