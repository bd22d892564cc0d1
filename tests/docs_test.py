#!/usr/bin/env python3
"""What the documents name exists: links and their anchors, files, and the names of classes,
functions and tests. And the classes of the fleet and of workers are named by words that somebody
who knows Kafka and SQS knows, or that the glossary explains.

    docs_test.py

Each rule is first tried on text that breaks it, then applied to the tree.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ("src", "sim", "bench", "fuzz", "tests", "console", "examples", "scripts", "cmake",
           "packaging", "docs/monitoring")
# Documents that tell what was: they may name what is gone.
OF_THE_PAST = {"CHANGELOG.md"}
NAME_LETTERS_MIN = 12
# Names of other products which our own sources do not mention.
OTHERS = {
    "AWS": {"FilterCriteria", "MaximumBatchingWindowInSeconds", "MaximumConcurrency",
            "ReportBatchItemFailures", "RetentionPeriod", "HttpConnections"},
    "RocksDB": {"DeleteFilesInRanges", "SchedulePurge"},
    "systemd": {"ReadWritePaths"},
}
# Rooms whose classes have names that need no dictionary.
FIELD_ROOMS = ("fleet", "fleet_node", "fleet_admin", "link", "kafka", "worker")
# What Kafka, Raft, SQS and networks call things, and plain English for what anybody programs.
FIELD_WORDS = set("""
    admin advice advisor anew and answer answered ask assignment backoff backup batch blocking books
    brokers budget cancel channel client clock conf connection consumed consumer context control
    deliver delivery description destroy distributor ended entries entry events extended extension
    failure fair figures filler finding findings fleet flight follower forget forward found handled
    handler heard hello histogram host id ids import imported in index information inspected
    inspector job journal judge kafka limit link links load log loop loss maker mending message
    metadata metrics mode monitor move named node offset old options origin pace partition parts
    pause peer plan poll pool port publication publish publisher queue queues rate reactor reader
    rebuild recipe release report reporter router scaling security sent session settings shard
    shared shares signals silence size skip sparse state statistics stop store stores stream summary stall
    task tcp tenant throttle tls told topic transfer transport troubles use visibility watch worker
    writer""".split())
# Words that were ours alone and have given way to those of the field.
GONE_WORDS = re.compile(r"\b(?:[Ww]arden(?:ship)?s?|[Ee]rrands?|StoreShelf|Elsewhere|TransferDesk|"
                        r"FrontDoor|SignInDesk|Dice|met_the_future|fall_silent|"
                        r"forsake)\b")

FENCED = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`]+)`")
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*…?")
# A condition key of a policy (aws:SourceArn), which AWS names.
CONDITION_KEY = re.compile(r"\b[a-z][a-z0-9]*:(?!:)[A-Za-z0-9]+…?")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.*)$", re.MULTILINE)
FOLDER = re.compile(r"(?:src|sim|tests|docs|bench|fuzz|cmake|console|examples|packaging|scripts)/[\w./*-]*")
FILE = re.compile(r"(?:[\w-]+/)*[\w-]+\.(?:h|cc|cmake|py|js|md)")


def is_long_name(word):
    return len(word) >= NAME_LETTERS_MIN and re.search(r"[a-z0-9][A-Z]", word) is not None


def check_names(name, text, known, others):
    """`others` gets the exceptions that the text needs."""
    excepted = set().union(*OTHERS.values())
    for code in CODE.findall(FENCED.sub("", text)):
        for word in WORD.findall(CONDITION_KEY.sub("", code)):
            stem = word.rstrip("…")
            if not is_long_name(stem) or stem in known:
                continue
            if word != stem and any(other.startswith(stem) for other in known):
                continue
            if stem in excepted:
                others.add(stem)
            else:
                yield f"{name}: `{stem}` is not a name of the sources"


def anchors_of(text):
    """The anchors that GitHub gives the headings."""
    found = set()
    for heading in HEADING.findall(FENCED.sub("", text)):
        words = re.sub(r"[^\w\- ]", "", LINK.sub("]", heading).lower())
        anchor = words.strip().replace(" ", "-")
        number = 0
        while f"{anchor}-{number}" in found if number else anchor in found:
            number += 1
        found.add(f"{anchor}-{number}" if number else anchor)
    return found


def check_links(name, text, root):
    page = root / name
    for target in LINK.findall(FENCED.sub("", text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        to = (page.parent / path).resolve() if path else page
        if not to.exists():
            yield f"{name}: the link {target} leads nowhere"
        elif anchor and anchor not in anchors_of(to.read_text()):
            yield f"{name}: {to.name} has no heading for #{anchor}"


def check_files(name, text, root, files):
    """`files`: the names of all files, without their folders."""
    for code in CODE.findall(FENCED.sub("", text)):
        for word in code.split():
            if match := FOLDER.fullmatch(word):
                path = match.group(0).rstrip("/")
                if not (any(root.glob(path)) if "*" in path else (root / path).exists()):
                    yield f"{name}: there is no {path}"
            elif FILE.fullmatch(word) and pathlib.PurePath(word).name not in files:
                yield f"{name}: there is no file {word}"


CLASS = re.compile(r"^(?:class|struct|enum class) (?:\[\[\w+\]\] )?([A-Z]\w*)", re.MULTILINE)


def words_of(name):
    """KafkaControlLog -> kafka, control, log"""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*", name)]


def glossary_words(text):
    """All words of the terms of a glossary, in the first column of its table."""
    terms = re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE)
    return {word.lower() for term in terms for word in re.findall(r"\w+", term)}


def check_words(name, text, explained):
    """Words in the names of classes that are neither of the field nor `explained`."""
    for one in CLASS.findall(text):
        for word in words_of(one):
            if not {word, word.removesuffix("s")} & (FIELD_WORDS | explained):
                yield f"{name}: {one}: \"{word}\" is no word of the field, and the glossary has none"
    for word in sorted(set(GONE_WORDS.findall(text))):
        yield f"{name}: \"{word}\" has given way to a word of the field"


def read_sources():
    known, files = set(), set()
    for folder in SOURCES:
        for path in (ROOT / folder).rglob("*"):
            if "node_modules" in path.parts or not path.is_file():
                continue
            files.add(path.name)
            try:
                known.update(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", path.read_text()))
            except UnicodeDecodeError:
                continue
    files.update(path.name for path in [*ROOT.glob("*"), *(ROOT / "docs").rglob("*")])
    return known, files


def check_tree():
    known, files = read_sources()
    # This file names the exceptions, and is no proof that they exist.
    known -= set().union(*OTHERS.values())
    pages = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
    others = set()
    if len(pages) < 10 or not known:
        yield "nothing was found to look at"
    for path in pages:
        name, text = str(path.relative_to(ROOT)), path.read_text()
        yield from check_links(name, text, ROOT)
        if name in OF_THE_PAST:
            continue
        yield from check_names(name, text, known, others)
        yield from check_files(name, text, ROOT, files)
    explained = glossary_words((ROOT / "docs/glossary.md").read_text())
    for room in FIELD_ROOMS:
        headers = sorted((ROOT / "src" / room).glob("*.h"))
        if not headers:
            yield f"the room {room} is empty"
        for path in headers:
            if "test" not in path.stem:
                yield from check_words(f"src/{room}/{path.name}", path.read_text(), explained)
    for unused in sorted(set().union(*OTHERS.values()) - others):
        yield f"{unused} is excepted, and no document names it"


def self_test():
    known = {"KafkaSharedJournal", "TheJournalIsTrimmedBehindWhatWasSaved"}
    page = "docs/architecture.md"
    broken = {
        "a name that is gone": list(check_names(page, "`KafkaPrivateJournal`", known, set())),
        "a member that is gone": list(check_names(page, "`kafka::KafkaPrivateJournal`", known, set())),
        "a beginning that is gone": list(check_names(page, "`TheJournalIsKept…`", known, set())),
        "a dead link": list(check_links(page, "[a](nowhere.md)", ROOT)),
        "a dead anchor": list(check_links(page, "[a](fleet.md#nowhere)", ROOT)),
        "a dead anchor of the page": list(check_links(page, "[a](#nowhere-at-all)", ROOT)),
        "a dead path": list(check_files(page, "`src/nowhere/a.h`", ROOT, set())),
        "a dead pattern": list(check_files(page, "`src/nowhere/*.h`", ROOT, set())),
        "a word of our own": list(check_words("a.h", "class KafkaShelf {\n", {"drawer"})),
        "a word that is gone": list(check_words("a.h", "// The warden decides.\n", set())),
        "a dead file": list(check_files(page, "`nowhere.h`", ROOT, {"somewhere.h"})),
    }
    for what, found in broken.items():
        if len(found) != 1:
            yield f"the test of {what} found {found}"
    fine = [*check_names(page, "`kafka::KafkaSharedJournal`, `TheJournalIsTrimmedBehindWhat…`, `Journal`, "
                               "`ec2:SourceInstanceArn`, "
                               "MixedCaseInProse\n```\n`NotInACodeBlock`\n```\n", known, set()),
            *check_links(page, "[a](https://example.com) [b](fleet.md#operating) [c](adr)", ROOT),
            *check_words("a.h", "class KafkaBeat {\nstruct TLSOptions;\n", {"beat"}),
            *check_files(page, "`src/engine`, `tests/scenario/*.txt`, `a.h`, `a.toml`", ROOT, {"a.h"})]
    if fine:
        yield f"what is in order was found: {fine}"
    if anchors_of("# A `b` c, d\n## A `b` c, d\n") != {"a-b-c-d", "a-b-c-d-1"}:
        yield "anchors are not those of GitHub"


def main():
    problems = [*self_test(), *check_tree()]
    for problem in problems:
        print(problem)
    print(f"{1 if not problems else 0} passed, {1 if problems else 0} failed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
