#!/usr/bin/env python3
"""What the house style promises and no compiler holds: ids of invariants are unique, a switch over
actions has no default, files, functions, classes and rooms are small, every fuzz target is built and run, and the
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
# A class: its functions, its lines in the header and those of its functions elsewhere, its files.
CLASS_MAX = (40, 500, 3)
# Classes that are larger today, and how large each may be until it is cut: this may only shrink.
LARGER_CLASSES = {
    "Broker": (46, 516, 2),
    "Client": (60, 118, 2),
    "Connection": (49, 582, 2),
    "Engine": (161, 2204, 10),
    "KafkaConnection": (36, 537, 2),
    "Keeper": (56, 566, 2),
    "LaneSet": (43, 349, 2),
    "PeerSessions": (34, 528, 2),
    "Queue": (66, 533, 3),
    "Replica": (46, 541, 2),
    "Shard": (93, 1132, 5),
}
# Lines of code of a room, a folder of src, without its tests, comments and empty lines.
ROOM_LINES_MAX = 6000
OTHER_ROOMS = {"cli": 4000, "service": 2500, "engine": 10500}
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

# A class, but no declaration of one; and a function of a class that is defined outside it.
CLASS = re.compile(r"^(?:class|struct) ((?:\w+::)*\w+)(?: final)?(?: : [^;]*)?(?: \{|$)")
MEMBER_OF = re.compile(r"(?:^|[\s&*(])((?:\w+::)+)(?:~?\w+|operator[^\w\s(]+)\(")
NO_MEMBER = re.compile(r"(?:using|friend|static_assert|struct|class|enum|union|typedef)\b")
TEMPLATE_ARGUMENTS = re.compile(r"<[^<>()]*(?:\([^()]*\)[^<>()]*)*>")


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


def declarations_of(body):
    """The members of a class, by the form that clang-format gives them: each as one line, without
    the bodies of functions."""
    at = 0
    while at < len(body):
        line = body[at]
        at += 1
        if not re.match(r"  [^\s/#}]", line):
            continue
        text = line.strip()
        while not re.search(r"[;{}]$|;\s+//.*$", line) and at < len(body) and body[at].startswith("   "):
            line = body[at]
            at += 1
            text += " " + line.strip()
        yield text


def is_function(declaration):
    if NO_MEMBER.match(declaration) or re.search(r"= (?:delete|default);$", declaration):
        return False
    shorter, text = declaration, None
    while shorter != text:
        text, shorter = shorter, TEMPLATE_ARGUMENTS.sub("", shorter)
    before, opens, _ = text.partition("(")
    return bool(opens) and ("operator" in before or not re.search(r"[={]", before))


def classes_of(text):
    """(name, lines of the body) of each class that is in no other."""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if begin := CLASS.match(line):
            end = next((i for i in range(at, len(lines)) if lines[i].startswith(("};", "}  //"))), at)
            if not any(re.match(r"\S.*;$", between) for between in lines[at:end]):
                yield begin.group(1), lines[at + 1:end]


def sizes_of_classes(files):
    """`files`: (name, text). (file, class) -> functions, lines, files. What is defined outside a
    class belongs to the class of that name in the same layer."""
    sizes = {}
    for name, text in files:
        for one, body in classes_of(text):
            functions = sum(map(is_function, declarations_of(body)))
            sizes[name, one] = [functions, len(body) + 2, {name}]
    by_layer = {}
    for (name, one), size in sizes.items():
        by_layer.setdefault((name.split("/")[:2][-1], one), []).append(size)
    for name, text in files:
        lines = text.split("\n")
        for line, count, _ in functions_of(text):
            head = " ".join(lines[line - 1:line + 3]).split("{")[0]
            if owner := MEMBER_OF.search(head):
                for size in by_layer.get((name.split("/")[:2][-1], owner.group(1)[:-2]), []):
                    size[1] += count
                    size[2].add(name)
    return {key: (functions, count, len(where)) for key, (functions, count, where) in sizes.items()}


def check_classes(files, larger):
    sizes = sizes_of_classes(files)
    known = {one for _, one in sizes}
    for (name, one), size in sizes.items():
        most = larger.get(one, CLASS_MAX)
        for count, bound, what in zip(size, most, ("functions", "lines", "files")):
            if count > bound:
                yield f"{name}: the class {one} has {count} {what}, more than {bound}"
        if one in larger and all(count <= bound for count, bound in zip(size, CLASS_MAX)):
            yield f"{name}: the class {one} is no longer too large; take it off the list of what is"
    for one in larger:
        if one not in known:
            yield f"there is no class {one}; take it off the list of those that are too large"


def check_rooms(files):
    lines = {}
    for name, text in files:
        room = name.split("/")[1]
        lines[room] = lines.get(room, 0) + sum(
            1 for line in text.split("\n") if line.strip() and not line.lstrip().startswith("//"))
    for room, count in lines.items():
        most = OTHER_ROOMS.get(room, ROOM_LINES_MAX)
        if count > most:
            yield f"src/{room} has {count} lines of code, more than {most}"


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
    product = []
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
            if folder == "src" and not path.stem.endswith("_test"):
                product.append((name, text))
            yield from check_switches(name, text)
            yield from check_sizes(name, text)
    pages = [path for path in sorted((ROOT / "console").iterdir())
             if path.suffix in (".js", ".html", ".css")]
    for path in pages:
        yield from check_console(str(path.relative_to(ROOT)), path.read_text())
    if files == 0 or not pages or not any(ids_of(text) for _, text in headers):
        yield "nothing was found to look at"
    yield from check_invariants(headers)
    yield from check_classes(product, LARGER_CLASSES)
    yield from check_rooms(product)
    sources = {path.name for path in (ROOT / "fuzz").glob("*.cc")}
    yield from check_fuzz(sources, (ROOT / "fuzz/CMakeLists.txt").read_text())


def self_test():
    """A rule that finds nothing in text that breaks it would be useless."""
    long_function = "void f(int a,\n       int b) {\n" + "  g();\n" * FUNCTION_LINES_MAX + "}\n"
    small_class = "class A : public B {\n public:\n" + "  int f(int a) const;\n" * CLASS_MAX[0] + \
        "  std::function<void()> g_;\n  int h_{f(1)};\n};\n"
    large_class = small_class.removesuffix("};\n") + "  template <class T>\n  void i(T t);\n};\n"
    long_class = "class A {\n  int f();\n};\n"
    long_part = "int A::f() {\n" + "  g();\n" * (CLASS_MAX[1] // 2) + "}\n"
    broken = {
        "an id twice": list(check_invariants([("a.h", "//   Q1  One.\n"), ("b.h", "//   Q1  Two.\n")])),
        "a gap": list(check_invariants([("a.h", "//   Q1  One.\n//   Q3  Three.\n")])),
        "a torn id": list(check_invariants([("a.h", "//   Q1  One.\n//   is so. Q2  Two.\n")])),
        "a default": list(check_switches("a.cc", "  switch (a) {\n    case Action::kA:\n      break;\n"
                                                 "    default:\n      break;\n  }\n")),
        "a long file": list(check_sizes("a.cc", "int a;\n" * (FILE_LINES_MAX + 1))),
        "a long function": list(check_sizes("a.cc", long_function)),
        "a long member": list(check_sizes("a.cc", long_function.replace("void f", "int A::f"))),
        "a large class": list(check_classes([("src/a/a.h", large_class)], {})),
        "a class that is larger than known": list(
            check_classes([("src/a/a.h", large_class)], {"A": CLASS_MAX})),
        "a class that is large no more": list(
            check_classes([("src/a/a.h", small_class)], {"A": (CLASS_MAX[0] + 1, 1000, 3)})),
        "a class that is gone": list(check_classes([("src/a/a.h", small_class)], {"B": CLASS_MAX})),
        "a long class": list(check_classes([("src/a/a.h", long_class), ("src/a/a.cc", long_part),
                                            ("src/a/b.cc", long_part)], {})),
        "a class in many files": list(check_classes(
            [("src/a/a.h", long_class)] + [(f"src/a/{i}.cc", "int A::f() {\n  g();\n}\n")
                                           for i in range(CLASS_MAX[2])], {})),
        "a large room": list(check_rooms([("src/a/a.cc", "f();\n// Why.\n\n" * ROOM_LINES_MAX),
                                          ("src/a/b/c.h", "int a;\n")])),
        "a room that is larger than its own bound": list(
            check_rooms([("src/cli/a.cc", "f();\n" * (OTHER_ROOMS["cli"] + 1))])),
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
            *check_classes([("src/a/a.h", small_class), ("src/a/a.cc", long_part),
                            ("src/b/b.cc", long_part)], {}),
            *check_rooms([("src/a/a.cc", "f();\n// Why.\n\n" * ROOM_LINES_MAX)]),
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
