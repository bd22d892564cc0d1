#!/usr/bin/env python3
"""Layers include downwards only, as cmake/layers.cmake lists them, and every file keeps the rules.

    include_rules_test.py          fails if an include goes sideways or up, or from one folder to
                                   another that it is to be apart from, or if the picture of the
                                   layers in docs/architecture.md is not the one that follows
    include_rules_test.py --draw   draws that picture anew
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
APART = re.compile(r"^stanchion_apart\((\S+) (\S+)\)", re.MULTILINE)
LAYER = re.compile(r"^stanchion_layer\(([^)]*)\)", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
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


def main():
    layers = read_layers()
    if sys.argv[1:] == ["--draw"]:
        PICTURE.write_text(with_picture(PICTURE.read_text(), layers))
        return 0
    problems = list(check_layers(layers))
    problems += check_picture(layers)
    apart = read_apart()
    problems += check_apart(apart)
    files = 0
    for path in sorted((ROOT / "src").rglob("*.[hc]*")):
        if path.suffix not in (".h", ".cc"):
            continue
        files += 1
        folder = path.relative_to(ROOT / "src").parent
        layer = folder.parts[0]
        if layer not in layers:
            problems.append(f"src/{layer} is not listed in cmake/layers.cmake")
            continue
        problems += check_file(path, layers[layer], apart.get(str(folder), set()))
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
