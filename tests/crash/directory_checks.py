"""Data directories that a server must refuse, and a disk that is full.

A check returns the list of what is wrong, empty if nothing is, or None if this machine does not
permit what it needs.
"""

import base64
import contextlib
import glob
import hashlib
import http.client
import os
import random
import re
import shutil
import stat
import subprocess

from ledger import make_body
from server import Server, run
from sqs import Client, Refused

QUEUE = "messages"
DISK_SIZE = "200m"
BIG_BODY_SIZE = 256 * 1024 - 100
FULL_DISK_SENDS_MAX = 2000
FULL_DISK_RESTARTS = 3


def refusal(binary, data, options=()):
    """Starts a server that should refuse: (exit status or None, its output)."""
    status, _, errors = run(binary, "serve", "--data", data, "--listen", "127.0.0.1:0", *options)
    return status, errors.strip()


def fingerprint(data):
    """Everything that was ever written: not the space that is only allocated, nor the lock."""
    found = {}
    for folder, _, names in os.walk(data):
        for name in names:
            if name.endswith((".segment", ".meta")):
                with open(os.path.join(folder, name), "rb") as file:
                    written = file.read().rstrip(b"\0")
                found[name] = hashlib.sha256(written).hexdigest()
    return found


def receive_all(client, expected):
    """The bodies that exist, as a sorted list. Receives until `expected` came or nothing comes."""
    bodies = []
    while True:
        answer = client.call(
            "ReceiveMessage", QueueUrl=QUEUE, MaxNumberOfMessages=10, VisibilityTimeout=600
        )
        got = [message["Body"] for message in answer.get("Messages", [])]
        bodies += got
        if not got or len(bodies) > expected:
            return sorted(bodies)


def check_second_server(binary, directory, _seed):
    server = Server(binary, os.path.join(directory, "shared"))
    server.start()
    status, said = refusal(binary, server.data)
    pid = server.process.pid
    server.kill()
    problems = []
    if status in (0, None) or f"in use by another stanchion (pid {pid})" not in said:
        problems.append(f"the second server ended with {status} and said: {said}")
    server.start()  # The lock went with the process.
    server.kill()
    return problems


def make_segments(binary, data):
    """A journal of three segments, the last of several commits: (the server, bodies in it)."""
    server = Server(binary, data, ["--shards", "1"])
    bodies = []
    for start in range(3):
        server.start()
        client = Client(server.find)
        if start == 0:
            client.call("CreateQueue", QueueName=QUEUE)
        for i in range(20):
            bodies.append(make_body(f"{start}/{i}", 500))
            client.call("SendMessage", QueueUrl=QUEUE, MessageBody=bodies[-1])
        client.close()
        server.kill()
    return server, sorted(bodies)


def flip(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0x10]))


def problems_with_damage(binary, data, path, offset):
    """One flipped byte: the server refuses, changes nothing, and inspect says the same."""
    problems = []
    flip(path, offset)
    before = fingerprint(data)
    status, said = refusal(binary, data)
    found = re.search(re.escape(path) + r" cannot be used, at offset (\d+): \S", said)
    if status in (0, None) or not found:
        problems.append(f"byte {offset} of {path}: serve ended with {status} and said: {said}")
    if fingerprint(data) != before:
        problems.append(f"byte {offset} of {path}: the refused start changed the directory")
    inspect_status, output, _ = run(binary, "inspect", data)
    damaged_at = re.search(
        re.escape(os.path.basename(path)) + r":.*\n\s+DAMAGED at offset (\d+): \S", output
    )
    if inspect_status != 1 or not damaged_at:
        problems.append(f"byte {offset} of {path}: inspect ended with {inspect_status}: {output}")
    elif found and found[1] != damaged_at[1]:
        problems.append(f"serve says offset {found[1]}, inspect {damaged_at[1]}")
    elif found and not int(found[1]) <= offset < int(found[1]) + 1024:
        problems.append(f"byte {offset} is damaged and the message says {found[1]}")
    flip(path, offset)
    return problems


def place_in_a_body(path, bodies, seed):
    """Of a message in the middle of the segment. Up to seven bytes behind a frame belong to none:
    nobody reads them, and nobody misses them."""
    with open(path, "rb") as file:
        written = file.read()
    places = sorted(written.find(body.encode()) for body in bodies if body.encode() in written)
    return places[len(places) // 2] + seed % 500


def check_damage(binary, directory, seed):
    data = os.path.join(directory, "damaged")
    server, bodies = make_segments(binary, data)
    folder = os.path.join(data, "shard-000")
    segments = sorted(name for name in os.listdir(folder) if name.endswith(".segment"))
    problems = [] if len(segments) == 3 else [f"the journal has the segments {segments}"]
    # These hit header, first and middle frames. Damage to the very last frame of the last segment
    # would look like a torn write.
    for name in segments:
        path = os.path.join(folder, name)
        for offset in (5, 50, 90, place_in_a_body(path, bodies, seed)):
            problems += problems_with_damage(binary, data, path, offset)
    server.start()
    client = Client(server.find)
    if receive_all(client, len(bodies)) != bodies:
        problems.append("after the bytes were put right the messages are not the same")
    client.close()
    server.kill()
    return problems


def last_segment(folder):
    return os.path.join(folder, max(n for n in os.listdir(folder) if n.endswith(".segment")))


def cut(path):
    """The last 100 bytes."""
    os.truncate(path, os.path.getsize(path) - 100)


def zero(path):
    """All but the header."""
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        file.seek(48)
        file.write(bytes(size - 48))


def exchange_stores(data):
    first, second = (os.path.join(data, f"shard-00{i}", "store") for i in range(2))
    os.rename(first, first + ".x")
    os.rename(second, first)
    os.rename(first + ".x", second)


def check_lost_ends(binary, directory, _seed):
    """What vanished from the end of a journal, or was exchanged, is missed: serve refuses it and
    names it, inspect as well, and nothing is changed."""
    problems = []

    def expect_refusal(what, data, harm, words):
        copy = os.path.join(directory, f"lost-{what}")
        shutil.copytree(data, copy, ignore=shutil.ignore_patterns("control.sock"))
        harm(copy)
        before = fingerprint(copy)
        status, said = refusal(binary, copy)
        if status in (0, None) or not all(word in said for word in words):
            problems.append(f"{what}: serve ended with {status} and said: {said}")
        if fingerprint(copy) != before:
            problems.append(f"{what}: the refused start changed the directory")
        status, output, errors = run(binary, "inspect", copy)
        if status != 1 or words[0] not in output + errors:
            problems.append(f"{what}: inspect ended with {status} and said: {output}{errors}")
        shutil.rmtree(copy)

    def journal(data):
        return os.path.join(data, "shard-000")

    for stop in ("clean", "crash"):
        server = Server(binary, os.path.join(directory, f"ends-{stop}"), ["--shards", "2"])
        server.start()
        client = Client(server.find)
        for name in ("a", "b", "c", "d", QUEUE):
            client.call("CreateQueue", QueueName=name)
            client.call("SendMessage", QueueUrl=name, MessageBody="x")
        client.close()
        if stop == "crash":
            server.kill()
        elif server.terminate(20) != 0:
            problems.append("it did not stop cleanly")
        name = os.path.basename(last_segment(journal(server.data)))
        expect_refusal(f"deleted-{stop}", server.data,
                       lambda data: os.remove(last_segment(journal(data))), [name, "is missing"])
        expect_refusal(f"stores-{stop}", server.data, exchange_stores, ["SHARD says"])
        if stop == "clean":
            expect_refusal("cut", server.data, lambda data: cut(last_segment(journal(data))), [name])
            expect_refusal("zeroed", server.data, lambda data: zero(last_segment(journal(data))),
                           [name])
        server.start()
        server.kill()
    other = Server(binary, os.path.join(directory, "ends-other"), ["--shards", "2"])
    other.start()
    client = Client(other.find)
    for name in ("a", "b", "c", "d", QUEUE):  # Some in each shard.
        client.call("CreateQueue", QueueName=name)
    client.close()
    other.kill()

    def take_journal_of_other(data):
        shutil.copy(last_segment(journal(other.data)), last_segment(journal(data)))

    expect_refusal("foreign", os.path.join(directory, "ends-crash"), take_journal_of_other,
                   ["belongs to the data directory"])
    return problems


def damage_a_message(data, body):
    """Flips a byte of this body in the store; False if it is not found."""
    for folder, _, names in os.walk(data):
        for name in names:
            path = os.path.join(folder, name)
            if not name.endswith(".sst"):
                continue
            with open(path, "rb") as file:
                found = file.read().find(body[200:220].encode())
            if found >= 0:
                flip(path, found)
                return True
    return False


def files_of(data):
    """Every file of a directory, with its size and when it was last changed."""
    found = {}
    for folder, _, names in os.walk(data):
        for name in names:
            status = os.stat(os.path.join(folder, name))
            found[os.path.join(folder, name)] = (status.st_size, status.st_mtime_ns)
    return found


def receive_all_of(client, queue):
    bodies = []
    while messages := client.call("ReceiveMessage", QueueUrl=queue, MaxNumberOfMessages=10,
                                  VisibilityTimeout=600, WaitTimeSeconds=2).get("Messages"):
        bodies += [message["Body"] for message in messages]
    return bodies


def expect_repaired(binary, data, lost):
    """Inspects without changing anything, repairs, and inspects again; returns what was wrong."""
    problems = []
    before = files_of(data)
    status, output, errors = run(binary, "repair", "--data", data, "--dry-run")
    if status != 1 or f"{lost} are lost" not in output or "nothing was changed" not in output:
        problems.append(f"the dry run ended with {status} and said: {output}{errors}")
    after = files_of(data)
    changed = [path for path in before if before[path] != after.get(path) and "LOCK" not in path]
    if changed or set(before) != set(after):
        problems.append(f"the dry run changed {changed} {set(before) ^ set(after)}")
    status, output, errors = run(binary, "repair", "--data", data)
    if status != 0 or f"{lost} are lost" not in output or "is kept as" not in output:
        problems.append(f"repair ended with {status} and said: {output}{errors}")
    if not glob.glob(os.path.join(data, "shard-*", "store.damaged-1")):
        problems.append("the damaged store was not kept")
    status, output, _ = run(binary, "inspect", data)
    if status != 0 or "DAMAGED" in output:
        problems.append(f"inspect ended with {status} and said: {output}")
    status, output, _ = run(binary, "repair", "--data", data)
    if status != 0 or "damaged" in output:
        problems.append(f"the second repair ended with {status} and said: {output}")
    return problems


def check_repair(binary, directory, _seed):
    """What is readable of a damaged queue comes back, what is not is counted, and the rest is whole."""
    data = os.path.join(directory, "repair")
    server = Server(binary, data, ["--shards", "1"])
    server.start()
    client = Client(server.find)
    bodies = {"sick": [], "well": []}
    numbers = iter(range(1000))

    def send(queue, count):
        for _ in range(count):
            noise = random.Random(next(numbers)).randbytes(900)
            bodies[queue].append(base64.b64encode(noise).decode())
            client.call("SendMessage", QueueUrl=queue, MessageBody=bodies[queue][-1])

    for queue in bodies:
        client.call("CreateQueue", QueueName=queue)
        send(queue, 120)
    run(binary, "backup", "--data", data, "--to", data + ".backup")  # Makes a checkpoint.
    # The journal continues after it, also with records about messages that will be lost.
    for queue in bodies:
        for _ in range(5):
            taken = client.call("ReceiveMessage", QueueUrl=queue, MaxNumberOfMessages=10,
                                VisibilityTimeout=1)["Messages"]
            for message in taken[:5]:
                client.call("DeleteMessage", QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
                bodies[queue].remove(message["Body"])
        send(queue, 10)
    problems = []
    status, _, errors = run(binary, "repair", "--data", data)
    if status != 1 or "stop the server first" not in errors:
        problems.append(f"beside a running server it ended with {status} and said: {errors}")
    client.close()
    server.kill()
    if not damage_a_message(data, bodies["sick"][30]):
        return ["the message to damage was not found in the store"]
    status, output, _ = run(binary, "repair", "--data", data, "--dry-run")
    said = re.search(r"queue sick .*: (\d+) messages are readable, (\d+) are lost", output)
    if not said or "queue well" in output:
        return [f"the dry run said: {output}"]
    lost = int(said[2])
    problems += expect_repaired(binary, data, lost)
    server.start()
    client = Client(server.find)
    got = {queue: receive_all_of(client, queue) for queue in bodies}
    if sorted(got["well"]) != sorted(bodies["well"]):
        problems.append(f"of the other queue {len(got['well'])} messages were received")
    gone = set(bodies["sick"]) - set(got["sick"])
    # Some of the lost messages had been deleted already.
    if not set(got["sick"]) <= set(bodies["sick"]) or not 1 <= len(gone) <= lost <= 40:
        problems.append(f"{len(gone)} messages are gone, {lost} were said to be lost")
    if len(got["sick"]) != len(set(got["sick"])):
        problems.append("messages came back twice")
    server.kill()
    return problems


def check_damaged_block(binary, directory, _seed):
    """One damaged block of one queue: the queue is set aside and named, the rest goes on."""
    data = os.path.join(directory, "damaged-block")
    server = Server(binary, data, ["--shards", "1"])
    server.start()
    client = Client(server.find)
    bodies = {}
    for queue in ("sick", "well"):
        client.call("CreateQueue", QueueName=queue)
        bodies[queue] = []
        for i in range(60):
            noise = random.Random(f"{queue}/{i}").randbytes(900)
            bodies[queue].append(base64.b64encode(noise).decode())
            client.call("SendMessage", QueueUrl=queue, MessageBody=bodies[queue][-1])
    client.close()
    run(binary, "backup", "--data", data, "--to", data + ".backup")
    problems = []
    if server.terminate(20) != 0:
        problems.append("it did not stop cleanly")
    if not damage_a_message(data, bodies["sick"][30]):
        return ["the message to damage was not found in the store"]
    status, output, _ = run(binary, "inspect", data)
    if status != 1 or "DAMAGED: queue sick: " not in output or "queue well: up to" in output:
        problems.append(f"inspect ended with {status} and said: {output}")
    server.start()
    client = Client(server.find)
    try:
        for attempt in ("ReceiveMessage", "ReceiveMessage"):
            client.call(attempt, QueueUrl="sick", MaxNumberOfMessages=10)
            problems.append("a message of the damaged chunk was received")
    except Refused as refused:
        if refused.status != 500 or "cannot be read" not in str(refused) or ".sst" not in str(refused):
            problems.append(f"the refusal was: {refused}")
    got = []
    while len(got) < 60:
        messages = client.call("ReceiveMessage", QueueUrl="well", MaxNumberOfMessages=10)
        if not messages.get("Messages"):
            break
        got += [message["Body"] for message in messages["Messages"]]
    if sorted(got) != sorted(bodies["well"]):
        problems.append(f"of the other queue {len(got)} messages were received")
    connection = http.client.HTTPConnection(*server.find())
    connection.request("GET", "/health/ready")
    health = connection.getresponse()
    said = health.read().decode()
    connection.close()
    if health.status != 200 or ":sick" not in said:
        problems.append(f"health said {health.status} {said}")
    status, _, errors = run(binary, "backup", "--data", data, "--to", data + ".again")
    if status != 0:
        problems.append(f"no checkpoint any more: {errors}")
    if "sick is set aside" not in server.log_tail():
        problems.append(f"the log says: {server.log_tail()}")
    client.call("PurgeQueue", QueueUrl="sick")
    client.call("SendMessage", QueueUrl="sick", MessageBody="again")
    answer = client.call("ReceiveMessage", QueueUrl="sick")
    if [message["Body"] for message in answer.get("Messages", [])] != ["again"]:
        problems.append(f"after the purge it answered {answer}")
    client.close()
    server.kill()
    server.start()
    server.kill()
    return problems + server.died


def check_unusable_directories(binary, directory, _seed):
    problems = []

    def expect(what, words, status, said):
        if status in (0, None) or not all(word in said for word in words):
            problems.append(f"{what}: status {status}, it said: {said}")

    file = os.path.join(directory, "a-file")
    with open(file, "w", encoding="utf-8") as out:
        out.write("not a directory\n")
    missing = os.path.join(directory, "missing")
    foreign = os.path.join(directory, "foreign")
    os.mkdir(foreign)
    with open(os.path.join(foreign, "letter.txt"), "w", encoding="utf-8") as out:
        out.write("dear reader\n")
    expect("a file", [file], *refusal(binary, file))
    expect("below a file", [file, "Not a directory"], *refusal(binary, file + "/data"))
    expect("foreign files", [foreign, "letter.txt", "--data"], *refusal(binary, foreign))
    status, _, said = run(binary, "inspect", missing)
    expect("inspect of nothing", [missing, "No such file or directory"], status, said)
    if os.path.exists(missing):
        problems.append("inspect created the directory")
    status, _, said = run(binary, "inspect", foreign)
    expect("inspect of something else", [foreign], status, said)
    # Missing directories are created, with all parents.
    server = Server(binary, os.path.join(directory, "new", "deep", "data"))
    server.log_path = os.path.join(directory, "new.log")
    server.options = ["--shards", "2"]
    server.start()
    server.kill()
    # An incomplete copy is not treated as a new, empty directory.
    shutil.rmtree(os.path.join(server.data, "shard-001"))
    expect("a missing shard", [server.data, "shard-001 is missing"], *refusal(binary, server.data))
    status, output, _ = run(binary, "inspect", server.data)
    expect("inspect without a shard", ["shard-001 is missing"], status, output)
    return problems


@contextlib.contextmanager
def mounted(path, options):
    """A file system in memory at `path`; yields whether it could be mounted."""
    os.makedirs(path, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", path]
    try:
        done = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        done = False
    try:
        yield done
    finally:
        if done:
            subprocess.run(["umount", path], check=True)


def check_read_only(binary, directory, _seed):
    if os.geteuid() != 0:
        path = os.path.join(directory, "read-only")
        os.mkdir(path)
        os.chmod(path, stat.S_IRUSR | stat.S_IXUSR)
        status, said = refusal(binary, path)
        os.chmod(path, stat.S_IRWXU)
        return read_only_problems(path, status, said, "Permission denied")
    with mounted(os.path.join(directory, "read-only"), "ro,size=1m") as done:
        if not done:
            return None
        path = os.path.join(directory, "read-only")
        status, said = refusal(binary, path)
        return read_only_problems(path, status, said, "Read-only file system")


def read_only_problems(path, status, said, reason):
    if status not in (0, None) and path in said and reason in said:
        return []
    return [f"status {status}, it said: {said}"]


def fill(client, name):
    """Sends until the disk is full: the bodies that were acknowledged, and the refusal."""
    bodies = []
    for i in range(FULL_DISK_SENDS_MAX):
        # Bytes that cannot be compressed.
        noise = random.Random(f"{name}/{i}").randbytes(BIG_BODY_SIZE * 3 // 4)
        body = f"{name}/{i} {base64.b64encode(noise).decode()}"[:BIG_BODY_SIZE]
        try:
            client.call("SendMessage", QueueUrl=QUEUE, MessageBody=body)
        except Refused as refused:
            return bodies, refused
        bodies.append(body)
    return bodies, None


def take_away(client, count):
    """Receives and deletes at least `count` messages, or all; returns their bodies."""
    taken = []
    while len(taken) < count:
        answer = client.call("ReceiveMessage", QueueUrl=QUEUE, MaxNumberOfMessages=10)
        messages = answer.get("Messages", [])
        if not messages:
            break
        client.call("DeleteMessageBatch", QueueUrl=QUEUE, Entries=[
            {"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]} for i, m in enumerate(messages)
        ])
        taken += [message["Body"] for message in messages]
    return taken


def check_full_disk(binary, directory, _seed):
    disk = os.path.join(directory, "small-disk")
    with mounted(disk, f"size={DISK_SIZE}") as done:
        if not done:
            return None
        server = Server(binary, os.path.join(disk, "data"), ["--shards", "1"])
        server.log_path = os.path.join(directory, "small-disk.log")
        try:
            return full_disk_problems(server)
        except Refused as refused:
            return [f"a request that should be possible on a full disk was refused: {refused}"]
        finally:
            server.kill()


def full_disk_problems(server):
    """Fills the disk, deletes some, kills, and fills what the restart gave back, several times."""
    acknowledged, taken = [], []
    server.start()
    client = Client(server.find)
    client.call("CreateQueue", QueueName=QUEUE)
    for round_number in range(1 + FULL_DISK_RESTARTS):
        if round_number > 0:
            server.kill()
            server.start()
            client.close()
            client = Client(server.find)
        bodies, refused = fill(client, f"round-{round_number}")
        acknowledged += bodies
        if refused is None or refused.status != 503 or "full" not in refused.message:
            return [f"after {len(acknowledged)} sends of 256 KiB the answer was: {refused}"]
        taken += take_away(client, 20)
    server.kill()
    server.start()
    client.close()
    client = Client(server.find)
    taken += take_away(client, len(acknowledged))
    client.close()
    print(
        f"     full disk: {len(acknowledged)} sends of 256 KiB fit on {DISK_SIZE},"
        f" {len(taken)} were received and deleted, over {FULL_DISK_RESTARTS + 1} kills"
    )
    problems = list(server.died)
    if sorted(taken) != sorted(acknowledged):
        missing, extra = len(set(acknowledged) - set(taken)), len(taken) - len(set(taken))
        problems.append(f"{missing} messages are missing, {extra} came twice")
    return problems


DIRECTORY_CHECKS = [
    ("a second server on the same directory is refused and told who has it", check_second_server),
    ("damage is refused by file and offset, inspect says where, nothing changes", check_damage),
    ("what vanished from the end of a journal is missed", check_lost_ends),
    ("a damaged block sets its queue aside, and the rest goes on", check_damaged_block),
    ("repair brings back what is readable and says what is lost", check_repair),
    ("directories that cannot be used are refused with their name", check_unusable_directories),
    ("a read-only directory is refused with its name", check_read_only),
    ("a full disk answers 503, lets messages be drained and loses nothing", check_full_disk),
]
