"""Promises of `inspect`, `repair` and `backup`: none of them calls a directory sound on which no
server starts, and none of them waits for ever.

A check returns the list of what is wrong, empty if nothing is.
"""

import os
import shutil
import stat

from directory_checks import QUEUE, fingerprint, flip, last_segment, receive_all, refusal
from ledger import make_body
from server import Server, run
from sqs import Client

STARTS = 3
SENDS = 20
HUGE = 50 << 30


def send_some(client, tag, bodies, count=SENDS):
    for i in range(count):
        bodies.append(make_body(f"{tag}/{i}", 500))
        client.call("SendMessage", QueueUrl=QUEUE, MessageBody=bodies[-1])


def make_directory(binary, data, with_checkpoint, stop):
    """A journal of several segments, if wanted with a checkpoint in their middle: its bodies."""
    server = Server(binary, data, ["--shards", "1"])
    bodies = []
    for start in range(STARTS):
        server.start()
        client = Client(server.find)
        if start == 0:
            client.call("CreateQueue", QueueName=QUEUE)
        send_some(client, start, bodies)
        if with_checkpoint and start == 1:
            # The checkpoint after this one trims the journal up to it.
            for number in range(2):
                status, _, said = run(binary, "backup", "--data", data, "--to",
                                      f"{data}.backup{number}")
                assert status == 0, said
                send_some(client, f"{start}-{number}", bodies)
        client.close()
        if stop == "clean":
            assert server.terminate(20) == 0, server.log_tail()
        else:
            server.kill()
    shutil.rmtree(data + ".backup0", ignore_errors=True)
    shutil.rmtree(data + ".backup1", ignore_errors=True)
    if os.path.exists(os.path.join(data, "control.sock")):
        os.remove(os.path.join(data, "control.sock"))
    return sorted(bodies)


def shard(data):
    return os.path.join(data, "shard-000")


def store(data):
    return os.path.join(shard(data), "store")


def segments(data):
    return sorted(os.path.join(shard(data), name) for name in os.listdir(shard(data))
                  if name.endswith(".segment"))


def remove_all_segments(data):
    for path in segments(data):
        os.remove(path)


def used_size(path):
    """Up to the last byte that is not zero."""
    with open(path, "rb") as file:
        return len(file.read().rstrip(b"\0"))


def used_size_of_head(path):
    """As used_size(), of a segment of which only the beginning is in use."""
    with open(path, "rb") as file:
        return len(file.read(4 << 20).rstrip(b"\0"))


def cut(path, parts_of_ten):
    os.truncate(path, used_size(path) * parts_of_ten // 10)


# What is done to a directory, and whether it needs a checkpoint for a start to notice.
HARMS = {
    "the first segment is gone": (lambda data: os.remove(segments(data)[0]), False),
    "the last segment is gone": (lambda data: os.remove(segments(data)[-1]), False),
    "all segments are gone": (remove_all_segments, False),
    "all segments and the note are gone": (
        lambda data: (remove_all_segments(data), os.remove(os.path.join(shard(data), "end"))), True),
    "the first segment was cut": (lambda data: cut(segments(data)[0], 5), False),
    "the last segment was cut": (lambda data: cut(segments(data)[-1], 5), False),
    "a byte of the first segment changed": (lambda data: flip(segments(data)[0], 200), False),
    "a byte of the last segment changed": (lambda data: flip(segments(data)[-1], 200), False),
    "CURRENT is gone": (lambda data: os.remove(os.path.join(store(data), "CURRENT")), True),
    "SHARD is gone": (lambda data: os.remove(os.path.join(store(data), "SHARD")), False),
    "the store is gone": (lambda data: shutil.rmtree(store(data)), True),
    "the shard is gone": (lambda data: shutil.rmtree(shard(data)), False),
}


def content(data):
    """Every file by its name within the directory, but not what belongs to a process."""
    found = {}
    for folder, _, names in os.walk(data):
        for name in names:
            if name not in ("LOCK", "next", "reserve", "allocating"):
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    found[os.path.relpath(path, data)] = file.read()
    return found


def promises_broken(binary, data):
    """Of a directory on which no server starts."""
    problems = []
    before = content(data)
    for command in (["inspect", data], ["repair", "--data", data, "--dry-run"],
                    ["repair", "--data", data]):
        status, output, errors = run(binary, *command)
        if status != 1 or ": sound" in output:
            problems.append(f"{command[0]} ended with {status} and said: {output}{errors}")
        if command[0] == "repair" and "backup" not in errors:
            problems.append(f"repair does not say what to do: {output}{errors}")
    status, output, errors = run(binary, "backup", "--data", data, "--to", data + ".backup")
    if status != 1 or output or "--no-check" not in errors:
        problems.append(f"backup ended with {status} and said: {output}{errors}")
    if os.path.exists(data + ".backup"):
        problems.append("backup left something behind")
    status, output, errors = run(binary, "backup", "--no-check", "--data", data, "--to",
                                 data + ".copy")
    if status != 0 or "complete" in output:
        problems.append(f"backup --no-check ended with {status} and said: {output}{errors}")
    elif content(data + ".copy") != {
            name: bytes for name, bytes in before.items() if "metrics" not in name}:
        problems.append("the copy is not like the directory")
    if content(data) != before:
        problems.append("something was changed")
    return problems


def check_promises(binary, directory, _seed):
    problems = []
    for with_checkpoint in (False, True):
        for stop in ("clean", "crash"):
            state = f"{stop}-{'with' if with_checkpoint else 'without'}-checkpoint"
            data = os.path.join(directory, "promise-" + state)
            bodies = make_directory(binary, data, with_checkpoint, stop)
            for what, (harm, needs_checkpoint) in HARMS.items():
                if needs_checkpoint and not with_checkpoint:
                    continue
                copy = os.path.join(directory, "promise")
                shutil.copytree(data, copy)
                harm(copy)
                found = promises_broken(binary, copy)
                status, said = refusal(binary, copy)
                if status in (0, None):
                    found.append(f"serve ended with {status}: {said}")
                problems += [f"{state}, {what}: {problem}" for problem in found]
                for left in (copy, copy + ".copy", copy + ".backup"):
                    shutil.rmtree(left, ignore_errors=True)
            problems += [f"{state}: {problem}" for problem in
                         check_sound(binary, directory, data, bodies)]
    return problems


def check_sound(binary, directory, data, bodies):
    """What is whole is called so, and its backup has all."""
    problems = []
    status, output, errors = run(binary, "inspect", data)
    if status != 0:
        problems.append(f"inspect ended with {status} and said: {output}{errors}")
    status, output, errors = run(binary, "repair", "--data", data)
    if status != 0 or output != "shard 0: sound\n":
        problems.append(f"repair ended with {status} and said: {output}{errors}")
    backup = os.path.join(directory, "promise-backup")
    status, output, errors = run(binary, "backup", "--data", data, "--to", backup)
    if status != 0 or "complete" not in output:
        return problems + [f"backup ended with {status} and said: {output}{errors}"]
    server = Server(binary, backup)
    server.start()
    client = Client(server.find)
    if receive_all(client, len(bodies)) != bodies:
        problems.append("the backup has other messages")
    client.close()
    server.kill()
    shutil.rmtree(backup)
    return problems


def check_cut_segment(binary, directory, _seed):
    """After a crash, a last segment that is shorter than it was has lost something, wherever it was
    cut; one of which the last write is torn has not."""
    data = os.path.join(directory, "cut")
    server = Server(binary, data, ["--shards", "1"])
    server.start()
    client = Client(server.find)
    client.call("CreateQueue", QueueName=QUEUE)
    bodies, ends = [], []
    path = last_segment(shard(data))
    for _ in range(200):
        send_some(client, len(bodies), bodies, 1)
        ends.append((used_size_of_head(path) + 7) // 8 * 8)
    client.close()
    server.kill()
    with open(path, "rb") as file:
        whole = file.read()
    problems = []
    # Behind a frame, in its header, in its payload; and in the space that is not yet used.
    for size in (ends[98], ends[98] + 20, ends[98] + 300, ends[0] + 8, 48, 10, 0, ends[-1],
                 len(whole) - 1):
        os.truncate(path, size)
        before = fingerprint(data)
        status, said = refusal(binary, data)
        if status in (0, None) or path not in said or "cut" not in said and "past the end" not in said:
            problems.append(f"cut to {size}: serve ended with {status} and said: {said}")
        status, output, errors = run(binary, "inspect", data)
        if status != 1:
            problems.append(f"cut to {size}: inspect ended with {status}: {output}{errors}")
        if fingerprint(data) != before:
            problems.append(f"cut to {size}: something was changed")
        with open(path, "wb") as file:
            file.write(whole)
    with open(path, "r+b") as file:  # A part of the last write did not reach the disk.
        file.seek(ends[-1] - 100)
        file.write(bytes(100))
    server.start()
    client = Client(server.find)
    if receive_all(client, len(bodies)) != sorted(bodies[:-1]) or server.torn_tails() != 1:
        problems.append(f"a torn end is not accepted: {server.log_tail()}")
    client.close()
    server.kill()
    return problems


def check_pipes(binary, directory, _seed):
    """A named pipe in the place of any file: each command says so, and none waits."""
    data = os.path.join(directory, "pipes")
    make_directory(binary, data, True, "clean")
    tables = [name for name in os.listdir(store(data)) if name.endswith(".sst")]
    manifest = max(name for name in os.listdir(store(data)) if name.startswith("MANIFEST"))
    problems = []
    for name in ("stanchion.meta", "shard-000/end", "shard-000/store/SHARD",
                 "shard-000/store/COMMITTED", "shard-000/store/CURRENT",
                 f"shard-000/store/{manifest}", f"shard-000/store/{tables[0]}",
                 os.path.relpath(last_segment(shard(data)), data)):
        copy = os.path.join(directory, "pipe")
        shutil.copytree(data, copy)
        path = os.path.join(copy, name)
        named = os.path.basename(name).partition("-")[0]  # Of a manifest without its number.
        os.remove(path)
        os.mkfifo(path)
        for command in (["inspect", copy], ["repair", "--data", copy, "--dry-run"],
                        ["backup", "--data", copy, "--to", copy + ".backup"],
                        ["serve", "--data", copy, "--listen", "127.0.0.1:0"]):
            status, output, errors = run(binary, *command, timeout=30)
            if status != 1 or named not in output + errors:
                problems.append(f"{name}: {command[0]} ended with {status}: {output}{errors}")
            shutil.rmtree(copy + ".backup", ignore_errors=True)
        shutil.rmtree(copy)
    return problems


def check_huge_segment(binary, directory, _seed):
    """A sparse file is not read to its end before anything is said."""
    data = os.path.join(directory, "huge")
    make_directory(binary, data, False, "crash")
    os.truncate(last_segment(shard(data)), HUGE)
    problems = []
    for command in (["inspect", data], ["repair", "--data", data],
                    ["backup", "--data", data, "--to", data + ".backup"],
                    ["serve", "--data", data, "--listen", "127.0.0.1:0"]):
        status, output, errors = run(binary, *command, timeout=10)
        if status != 1 or "a segment has at most" not in output + errors:
            problems.append(f"{command[0]} ended with {status} and said: {output}{errors}")
    return problems


def check_refusals_of_the_system(binary, directory, _seed):
    """What the system refuses at the moment says nothing about the data."""
    data = os.path.join(directory, "refusals")
    make_directory(binary, data, True, "clean")
    last = os.path.basename(last_segment(shard(data)))
    problems = []
    for command in (["repair", "--data", data], ["backup", "--data", data, "--to", data + ".backup"]):
        status, output, errors = run("strace", "-f", "-qq", "-o", data + ".trace", "-P", last, "-e",
                                     "trace=openat", "-e", "inject=openat:error=EMFILE", binary,
                                     *command)
        if status != 1 or "Too many open files" not in errors:
            problems.append(f"{command[0]} ended with {status} and said: {output}{errors}")
        if "amage" in errors or "restore" in errors:
            problems.append(f"{command[0]} calls it damage: {errors}")
    return problems


def check_modes(binary, directory, _seed):
    """No file of a data directory or a backup is for everybody, whatever the umask says."""
    data = os.path.join(directory, "modes")
    before = os.umask(0)
    try:
        server = Server(binary, data, ["--shards", "1"])
        server.start()
        client = Client(server.find)
        client.call("CreateQueue", QueueName=QUEUE)
        send_some(client, "mode", [])
        status, _, said = run(binary, "backup", "--data", data, "--to", data + ".running")
        client.close()
        server.kill()
        status_stopped, _, said_stopped = run(binary, "backup", "--data", data, "--to",
                                              data + ".stopped")
    finally:
        os.umask(before)
    if status != 0 or status_stopped != 0:
        return [said + said_stopped]
    problems = []
    for root in (data, data + ".running", data + ".stopped"):
        for folder, folders, names in os.walk(root):
            for name in folders + names:
                path = os.path.join(folder, name)
                mode = stat.S_IMODE(os.stat(path).st_mode)
                if mode & 0o007:
                    problems.append(f"{path} has the mode {mode:o}")
    return problems


TOOL_CHECKS = [
    ("no command calls a directory sound on which no server starts", check_promises),
    ("a last segment that was cut is refused, one that is torn is not", check_cut_segment),
    ("no command waits for a named pipe", check_pipes),
    ("a huge sparse segment is refused at once", check_huge_segment),
    ("what the system refuses at the moment is not called damage", check_refusals_of_the_system),
    ("no file is for everybody", check_modes),
]
