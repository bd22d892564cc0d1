#!/usr/bin/env python3
"""Builds the Debian package, unpacks it, runs what is in it, and installs it.

    package_test.py --build build/release
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
NOT_PERMITTED = 77
BINARY_SIZE_MAX = 40_000_000
# What a bare Debian has, and the loader.
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
    for name in ("configuration.md", "operations.md", "CHANGELOG.md"):
        assert (root / "usr/share/doc/stanchion" / name).stat().st_size > 0, name


def it_installs_runs_upgrades_and_leaves_the_data(package, root):
    done = subprocess.run([HERE / "install_in_overlay", package], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode == NOT_PERMITTED:
        print("skip installing: this machine does not permit namespaces or overlays")
        return
    assert done.returncode == 0, f"ended with {done.returncode}\n{done.stdout}"


TESTS = [the_package_depends_on_the_c_library_alone, the_binary_runs_and_is_small,
         the_example_of_settings_is_valid_and_not_for_everybody,
         the_unit_is_one_that_systemd_understands, the_documentation_is_there,
         it_installs_runs_upgrades_and_leaves_the_data]


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
