#!/usr/bin/env python3
"""Layers include downwards only, as cmake/layers.cmake lists them, and every file keeps the rules."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYER = re.compile(r"^stanchion_layer\(([^)]*)\)", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def read_layers():
    layers = {}
    for match in LAYER.finditer((ROOT / "cmake/layers.cmake").read_text()):
        name, *allowed = match.group(1).split()
        layers[name] = set(allowed) | {name}
    return layers


def check_layers(layers):
    """Every layer may include what its dependencies may: no cycles, nothing unknown."""
    for name, allowed in layers.items():
        for other in allowed - {name}:
            if other not in layers:
                yield f"cmake/layers.cmake: {name} lists the unknown layer {other}"
            elif name in layers[other]:
                yield f"cmake/layers.cmake: {name} and {other} include each other"


def check_file(path, allowed):
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


def main():
    layers = read_layers()
    problems = list(check_layers(layers))
    files = 0
    for path in sorted((ROOT / "src").rglob("*.[hc]*")):
        if path.suffix not in (".h", ".cc"):
            continue
        files += 1
        layer = path.relative_to(ROOT / "src").parts[0]
        if layer not in layers:
            problems.append(f"src/{layer} is not listed in cmake/layers.cmake")
            continue
        problems += check_file(path, layers[layer])
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
