#!/usr/bin/env python3
"""What the house style promises and no compiler holds: ids of invariants are unique, a switch over
actions has no default, files and functions are short, every fuzz target is built and run, and the
console's pages take no text for HTML and do not trust the clock of a browser.

    tidy_test.py [--self-test]

Each rule is first tried on text that breaks it, then applied to the tree.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
# Tests may be longer: many small cases of one subject, and tables of samples.
TEST_FILE_LINES_MAX = 800
TEST_FUNCTION_LINES_MAX = 100
# Files that are longer today, and how long each may be until it is split.
LONGER_FILES = {}
CONSOLE_LINES_MAX = 400
CONSOLE_COLUMNS_MAX = 100
# What would make HTML or a program of text, or what the pages' policy refuses.
AS_HTML = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
                     r"|DOMParser|srcdoc|<[a-z][^>]* (?:style|on[a-z]+)=")
# Ages are computed by the server's time, and spans are measured by a clock that nobody can set.
OWN_CLOCK = re.compile(r"Date\.now\(|new Date\(\)|\bDate\(\)")
FOLDERS = ("src", "sim", "bench", "fuzz", "tests")

INVARIANT = re.compile(r"^\s*//\s{2,}([A-Z]{1,2}\d{1,2})(?:(?<=\D\d)\s{2,}|(?<=\d\d)\s+)\S", re.MULTILINE)
# An id that is not at the beginning of its line: a formatter has joined two of them.
TORN = re.compile(r"^\s*//\s.*\S\s([A-Z]{1,2}\d{1,2})\s{2,}[A-Z]", re.MULTILINE)
SWITCH = re.compile(r"^(\s*)switch \(.*\) \{$")
OPENS = re.compile(r"\)(?:\s*(?:const|noexcept|override|mutable|requires .*|-> .*|:.*))*\s*\{$")
NO_FUNCTION = re.compile(r"^\s*(?:namespace|class|struct|enum|union|if|for|while|switch|do|else|case"
                         r"|static constexpr|constexpr|const|return|TEST|INSTANTIATE)\b(?!.*\) (?:const )?\{$)"
                         r"|^\s*(?:if|for|while|switch|else|\} else)\b|\bstruct\b.*[^)] \{$")


def ids_of(text):
    return [match.group(1) for match in INVARIANT.finditer(text)]


def check_invariants(files):
    """`files`: (name, text) of headers. Classes that work together may share the letters of a list."""
    owners = {}
    letters = {}
    for name, text in files:
        for found in TORN.finditer(text):
            yield f"{name}: {found.group(1)} does not begin its line"
        for found in ids_of(text):
            if found in owners:
                yield f"{name}: {found} is an invariant of {owners[found]} already"
            else:
                owners[found] = name
                prefix, number = re.fullmatch(r"([A-Z]+)(\d+)", found).groups()
                letters.setdefault(prefix, []).append(int(number))
    for prefix, numbers in letters.items():
        if sorted(numbers) != list(range(1, len(numbers) + 1)):
            yield f"the invariants {prefix} are not numbered from 1 on: {numbers}"


def check_switches(name, text):
    lines = text.split("\n")
    for at, line in enumerate(lines):
        begin = SWITCH.match(line)
        if not begin:
            continue
        indent = begin.group(1)
        over_actions = False
        for number, inner in enumerate(lines[at + 1:], at + 2):
            if inner == indent + "}":
                break
            own = inner.startswith(indent + "  ") and not inner.startswith(indent + "   ")
            over_actions = over_actions or (own and "case Action::k" in inner)
            if own and inner.strip() == "default:" and over_actions:
                yield f"{name}:{number}: a switch over actions has a default"


def functions_of(text):
    """(line, lines, head) of each function, by the form that clang-format gives it."""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        # A lambda belongs to the function around it.
        if not OPENS.search(line) or re.search(r"\](?: \(|\()", line):
            continue
        head = at
        while head > 0 and lines[head - 1].strip() and not re.search(r"[;{}:]$|^\s*//|^\s*#",
                                                                     lines[head - 1]):
            head -= 1
        indent = len(lines[head]) - len(lines[head].lstrip())
        if indent > 4 or NO_FUNCTION.search(lines[head]):
            continue
        for end in range(at + 1, len(lines)):
            if re.match(rf" {{{indent}}}\}}[;,)]*(?:  //.*)?$", lines[end]):
                yield head + 1, end - head + 1, lines[head].strip()
                break


def check_sizes(name, text):
    is_test = name.startswith("tests/") or name.endswith("_test.cc")
    lines_max = LONGER_FILES.get(name, TEST_FILE_LINES_MAX if is_test else FILE_LINES_MAX)
    function_max = TEST_FUNCTION_LINES_MAX if is_test else FUNCTION_LINES_MAX
    count = text.count("\n")
    if count > lines_max:
        yield f"{name}: {count} lines, more than {lines_max}"
    if name in LONGER_FILES and count <= FILE_LINES_MAX:
        yield f"{name}: is no longer too long; take it off the list of what is"
    for line, size, head in functions_of(text):
        if size > function_max:
            yield f"{name}:{line}: {size} lines, more than {function_max}: {head}"


def check_console(name, text):
    """A file of the console's pages, which have no formatter."""
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > CONSOLE_COLUMNS_MAX:
            yield f"{name}:{number}: {len(line)} columns, more than {CONSOLE_COLUMNS_MAX}"
        if found := AS_HTML.search(line):
            yield f"{name}:{number}: {found.group(0)} is no way to show text"
        if found := OWN_CLOCK.search(line):
            yield f"{name}:{number}: {found.group(0)} is the browser's clock, which may be wrong"
    if text.count("\n") > CONSOLE_LINES_MAX:
        yield f"{name}: {text.count(chr(10))} lines, more than {CONSOLE_LINES_MAX}"


def check_fuzz(sources, cmake):
    built = set(re.findall(r"^stanchion_fuzzer\((\w+) ", cmake, re.MULTILINE))
    for source in sources:
        if source.endswith("_fuzz.cc") and source[:-3] not in built:
            yield f"fuzz/{source} is not built"
    for target in built:
        if f"{target}.cc" not in sources:
            yield f"fuzz/CMakeLists.txt builds {target}, which has no source"


def check_tree():
    headers = []
    files = 0
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".h", ".cc"):
                continue
            files += 1
            name = str(path.relative_to(ROOT))
            text = path.read_text()
            if path.suffix == ".h":
                headers.append((name, text))
            yield from check_switches(name, text)
            yield from check_sizes(name, text)
    pages = [path for path in sorted((ROOT / "console").iterdir())
             if path.suffix in (".js", ".html", ".css")]
    for path in pages:
        yield from check_console(str(path.relative_to(ROOT)), path.read_text())
    if files == 0 or not pages or not any(ids_of(text) for _, text in headers):
        yield "nothing was found to look at"
    yield from check_invariants(headers)
    sources = {path.name for path in (ROOT / "fuzz").glob("*.cc")}
    yield from check_fuzz(sources, (ROOT / "fuzz/CMakeLists.txt").read_text())


def self_test():
    """A rule that finds nothing in text that breaks it would be useless."""
    long_function = "void f(int a,\n       int b) {\n" + "  g();\n" * FUNCTION_LINES_MAX + "}\n"
    broken = {
        "an id twice": list(check_invariants([("a.h", "//   Q1  One.\n"), ("b.h", "//   Q1  Two.\n")])),
        "a gap": list(check_invariants([("a.h", "//   Q1  One.\n//   Q3  Three.\n")])),
        "a torn id": list(check_invariants([("a.h", "//   Q1  One.\n//   is so. Q2  Two.\n")])),
        "a default": list(check_switches("a.cc", "  switch (a) {\n    case Action::kA:\n      break;\n"
                                                 "    default:\n      break;\n  }\n")),
        "a long file": list(check_sizes("a.cc", "int a;\n" * (FILE_LINES_MAX + 1))),
        "a long function": list(check_sizes("a.cc", long_function)),
        "a long member": list(check_sizes("a.cc", long_function.replace("void f", "int A::f"))),
        "a wide line": list(check_console("a.js", "x" * (CONSOLE_COLUMNS_MAX + 1))),
        "a long page": list(check_console("a.js", "f();\n" * (CONSOLE_LINES_MAX + 1))),
        "the browser's clock": list(check_console("a.js", "const end = Date.now();\n")),
        "text as HTML": list(check_console("a.js", "element.innerHTML = text;\n")),
        "a style in HTML": list(check_console("a.html", '<p style="color: red">\n')),
        "an unbuilt target": list(check_fuzz({"a_fuzz.cc"}, "")),
        "a target without source": list(check_fuzz(set(), "stanchion_fuzzer(a_fuzz a_fuzz.cc)\n")),
    }
    for what, found in broken.items():
        if len(found) != 1:
            yield f"the test of {what} found {found}"
    fine = [*check_switches("a.cc", "  switch (a) {\n    case 'a':\n      switch (b) {\n"
                                    "        case Action::kA:\n          break;\n      }\n"
                                    "    default:\n      break;\n  }\n"),
            *check_sizes("a.cc", long_function.replace("  g();\n", "", 3)),
            *check_invariants([("a.h", "//   Q1  One, as R2 says.\n//   Q2  Two.\n")])]
    if fine:
        yield f"what is in order was found: {fine}"


def main():
    problems = [*self_test(), *check_tree()]
    for problem in problems:
        print(problem)
    print(f"{1 if not problems else 0} passed, {1 if problems else 0} failed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
