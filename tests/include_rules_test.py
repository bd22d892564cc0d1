#!/usr/bin/env python3
"""Layers include downwards only, as cmake/layers.cmake lists them, and every file keeps the rules.

    include_rules_test.py          fails if an include goes sideways or up, or from one folder to
                                   another that it is to be apart from or below, if a layer may
                                   include what it does not, if units include each other in a
                                   circle, or if the picture of the layers in docs/architecture.md
                                   is not the one that follows
    include_rules_test.py --draw   draws that picture anew
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BELOW = re.compile(r"^stanchion_below\((\S+) (\S+)\)", re.MULTILINE)
APART = re.compile(r"^stanchion_apart\((\S+) (\S+)\)", re.MULTILINE)
LAYER = re.compile(r"^stanchion_layer\(([^)]*)\)", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
# Units, a header with its source file, that include each other in a circle today: each list may only
# become shorter.
CIRCLES = [
    {"client/client", "client/impl"},
    {"client/credential_chain", "client/profile", "client/remote_credentials", "client/settings"},
    {"link/lane", "link/link_tls", "link/peer_sessions", "link/tcp_transport"},
    {"net/client_call", "net/http_client"},
    {"net/connection", "net/exchange_state", "net/http_server", "net/listener"},
    {"settings/settings", "settings/toml_text"},
    {"store/guarded_file_system", "store/incoming_table", "store/reclaimer", "store/rocks_setup",
     "store/rocks_store"},
]
PICTURE = ROOT / "docs/architecture.md"
PICTURE_BEGINS = "<!-- drawn from cmake/layers.cmake by tests/include_rules_test.py --draw -->\n"
PICTURE_ENDS = "<!-- end of the drawing -->\n"


def read_layers():
    layers = {}
    for match in LAYER.finditer((ROOT / "cmake/layers.cmake").read_text()):
        name, *allowed = match.group(1).split()
        layers[name] = set(allowed) | {name}
    return layers


def read_apart():
    """Folders below src/ -> folders that they may not include, though one layer has both."""
    apart = {}
    for one, other in APART.findall((ROOT / "cmake/layers.cmake").read_text()):
        apart.setdefault(one, set()).add(other)
        apart.setdefault(other, set()).add(one)
    return apart


def read_below():
    """(folder, unit): what is in the folder may not use the unit, not even through others."""
    return BELOW.findall((ROOT / "cmake/layers.cmake").read_text())


def check_apart(apart):
    for folder in apart:
        if not (ROOT / "src" / folder).is_dir():
            yield f"cmake/layers.cmake: there is no folder src/{folder}"


def check_layers(layers):
    """Every layer may include what its dependencies may: no cycles, nothing unknown."""
    for name, allowed in layers.items():
        for other in allowed - {name}:
            if other not in layers:
                yield f"cmake/layers.cmake: {name} lists the unknown layer {other}"
            elif name in layers[other]:
                yield f"cmake/layers.cmake: {name} and {other} include each other"


def direct(layers):
    """What each layer includes besides what it has through others."""
    return {name: [other for other in layers if other in allowed - {name} and not any(
        other in layers[between] for between in allowed - {name, other})]
        for name, allowed in layers.items()}


def floor_of(name, layers):
    return 1 + max((floor_of(other, layers) for other in layers[name] - {name}), default=0)


def draw(layers):
    """The levels, lowest last, each layer with the arrows that do not follow from others."""
    floors = {}
    for name in layers:
        floors.setdefault(floor_of(name, layers), []).append(name)
    arrows = direct(layers)
    width = max(len(name) for name in layers)
    lines = []
    for floor in sorted(floors, reverse=True):
        for at, name in enumerate(floors[floor]):
            below = f" ─▶ {'  '.join(arrows[name])}" if arrows[name] else ""
            lines.append(f"    {floor if at == 0 else ' '}  {name.ljust(width)}{below}".rstrip())
    return "\n".join(lines) + "\n"


def with_picture(text, layers):
    """The document with the drawing that follows from the layers; None if it has no place for it."""
    begin = text.find(PICTURE_BEGINS)
    end = text.find(PICTURE_ENDS)
    if begin < 0 or end < begin:
        return None
    return text[:begin] + PICTURE_BEGINS + "\n" + draw(layers) + "\n" + text[end:]


def check_picture(layers):
    text = PICTURE.read_text()
    if with_picture(text, layers) != text:
        yield ("docs/architecture.md: the picture of the layers is not what cmake/layers.cmake says; "
               "tests/include_rules_test.py --draw draws it anew")


def check_used(files, layers):
    """What no file of a layer includes needs no permission."""
    used = {name: {name} for name in layers}
    for path, text in files:
        used[path.split("/")[0]] |= {included.split("/")[0] for included in INCLUDE.findall(text)}
    for name, allowed in layers.items():
        for other in sorted(allowed - used[name]):
            yield f"cmake/layers.cmake: {name} may include {other}, and does not"


def check_file(path, allowed, forbidden=frozenset()):
    text = path.read_text()
    relative = path.relative_to(ROOT)
    if path.suffix == ".h" and "#pragma once" not in text:
        yield f"{relative}: no #pragma once"
    for included in INCLUDE.findall(text):
        top = included.split("/")[0]
        if "/" not in included or not ((ROOT / "src" / included).exists() or (ROOT / included).exists()):
            yield f'{relative}: includes "{included}", which is not a path below src/'
        elif allowed is not None and top not in allowed:
            yield f'{relative}: includes "{included}", but may only include {", ".join(sorted(allowed))}'
        elif str(pathlib.PurePath(included).parent) in forbidden:
            yield f'{relative}: includes "{included}", but the two folders are kept apart'


def units_of(files):
    """`files`: (path below src/, text). Each unit with those that it includes."""
    units = {}
    for name, text in files:
        unit = name.rsplit(".", 1)[0]
        included = {path.rsplit(".", 1)[0] for path in INCLUDE.findall(text)}
        units.setdefault(unit, set()).update(included - {unit})
    return units


def reach_of(units):
    """Each unit with those that it includes, directly or through others."""
    reach = {}
    for unit in units:
        found, ahead = set(), [unit]
        while ahead:
            for other in units.get(ahead.pop(), ()):
                if other not in found:
                    found.add(other)
                    ahead.append(other)
        reach[unit] = found
    return reach


def circles_of(units):
    """The sets of units that include each other, directly or through others."""
    reach = reach_of(units)
    circles = []
    for unit in units:
        if unit in reach[unit]:
            circle = {other for other in reach[unit] if unit in reach.get(other, ())}
            if circle not in circles:
                circles.append(circle)
    return circles


def check_circles(files, known):
    circles = circles_of(units_of(files))
    for circle in circles:
        if not any(circle <= allowed for allowed in known):
            yield f"these include each other in a circle: {', '.join(sorted(circle))}"
    for allowed in known:
        if allowed not in circles:
            yield f"is no longer a circle, or a smaller one; change the list: {', '.join(sorted(allowed))}"


def check_below(files, below):
    reach = reach_of(units_of(files))
    for folder, above in below:
        if above not in reach:
            yield f"cmake/layers.cmake: there is no unit {above}"
        within = [unit for unit in reach if str(pathlib.PurePath(unit).parent) == folder]
        if not within:
            yield f"cmake/layers.cmake: there is nothing in src/{folder}"
        for unit in within:
            if above in reach[unit]:
                yield f"src/{unit} uses {above}, below which it is to stay"


def self_test():
    """A rule that finds nothing in text that breaks it would be useless."""
    circle = [("a/a.h", '#include "a/b.h"\n'), ("a/b.h", ""), ("a/b.cc", '#include "a/c.h"\n'),
              ("a/c.h", '#include "a/a.h"\n'), ("a/d.h", '#include "a/a.h"\n')]
    if len(list(check_circles(circle, []))) != 1:
        yield "a circle through a source file was not found"
    if list(check_circles(circle, [{"a/a", "a/b", "a/c"}])):
        yield "a known circle was found"
    if len(list(check_circles(circle[:-2], [{"a/a", "a/b", "a/c"}]))) != 1:
        yield "a circle that is gone was not missed"
    tower = [("a/a.h", '#include "a/b/b.h"\n'), ("a/b/b.h", '#include "a/c.h"\n'), ("a/c.h", "")]
    if list(check_used([("a/a.h", '#include "b/b.h"\n')], {"a": {"a", "b", "c"}})) != [
            "cmake/layers.cmake: a may include c, and does not"]:
        yield "a permission that nobody uses was not found"
    if len(list(check_below(tower, [("a/b", "a/c"), ("a", "a/a")]))) != 1:
        yield "a folder that uses what is above it was not found"


def main():
    layers = read_layers()
    if sys.argv[1:] == ["--draw"]:
        PICTURE.write_text(with_picture(PICTURE.read_text(), layers))
        return 0
    problems = [*self_test(), *check_layers(layers)]
    problems += check_picture(layers)
    apart = read_apart()
    problems += check_apart(apart)
    files = 0
    product, all_files = [], []
    for path in sorted((ROOT / "src").rglob("*.[hc]*")):
        if path.suffix not in (".h", ".cc"):
            continue
        files += 1
        name = str(path.relative_to(ROOT / "src"))
        if not path.stem.endswith("_test"):
            product.append((name, path.read_text()))
        folder = path.relative_to(ROOT / "src").parent
        layer = folder.parts[0]
        if layer not in layers:
            problems.append(f"src/{layer} is not listed in cmake/layers.cmake")
            continue
        all_files.append((name, path.read_text()))
        problems += check_file(path, layers[layer], apart.get(str(folder), set()))
    problems += check_used(all_files, layers)
    problems += check_circles(product, CIRCLES)
    problems += check_below(product, read_below())
    for path in sorted((ROOT / "sim").rglob("*.[hc]*")):
        files += 1
        problems += check_file(path, (set(layers) | {"sim"}) - {"net", "service"})
    for problem in problems:
        print(problem)
    print(f"{files} files, {len(layers)} layers")
    print(f"{1 if not problems else 0} passed, {1 if problems else 0} failed")
    return 1 if problems or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
