#!/usr/bin/env python3
"""Every system call of the real program on its files fails once: start, checkpoint, backup, stop.

    python3 tests/crash/fault_test.py --binary build/release/stanchion [--seed N] [--cases N | --all]

The server runs under strace, which makes the N-th call of a kind fail in each of its threads: counted
from its beginning, or from when it is ready. It
starts on a copy of a directory that has a store and a journal behind it, takes sends, makes a
backup, which makes a checkpoint, and is told to stop. Whatever happens meanwhile, it must not end
without saying why, nor by a signal of its own; and the next start, without faults, must find all
that was acknowledged. After EINTR it must go on.

`make test` plays some of the cases, others each time; --all plays every one and takes hours.
"""

import base64
import collections
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import cases
from server import Server, StartFailed, run
from sqs import Client, Doubt, NotSent, Refused

# The errors that each call may return. Calls on sockets and timers are not included, or covered by
# other code.
CALLS = {
    "pread64": ["EIO"],
    "pwrite64": ["EIO", "ENOSPC"],
    "openat": ["EIO", "EMFILE"],
    "fdatasync": ["EIO", "ENOSPC", "EINTR"],
    "fsync": ["EIO", "EINTR"],
    "sync_file_range": ["EIO", "EINTR"],
    "ftruncate": ["EIO"],
    "fallocate": ["EIO", "ENOSPC"],
    "rename": ["EIO", "ENOSPC"],
    "link": ["EIO", "ENOSPC"],
    "unlink": ["EIO"],
    "newfstatat": ["EIO"],
    "getdents64": ["EIO"],
    "mkdir": ["EIO", "ENOSPC"],
    "getrandom": ["EAGAIN"],
}
PHASES = ["start", "run"]
QUEUES = ["plain", "ordered.fifo"]
SENDS = 12
STOP_SECONDS_MAX = 40
CASE_SECONDS_MAX = 90


def body(tag, i):
    """Bytes that cannot be compressed, so that tables have many blocks."""
    noise = random.Random(f"{tag}/{i}").randbytes(900)
    return f"{tag}/{i} {base64.b64encode(noise).decode()}"


def send(client, queue, text):
    extra = {}
    if queue.endswith(".fifo"):
        extra = {"MessageGroupId": text[:3], "MessageDeduplicationId": text.split()[0]}
    client.call("SendMessage", QueueUrl=queue, MessageBody=text, **extra)


def make_original(binary, data):
    """A store with a checkpoint and a journal after it; returns the bodies in it, by queue."""
    held = collections.defaultdict(set)
    server = Server(binary, data, ["--shards", "1"])
    server.start()
    client = Client(server.find)
    for queue in QUEUES:
        attributes = {"FifoQueue": "true"} if queue.endswith(".fifo") else {}
        client.call("CreateQueue", QueueName=queue, Attributes=attributes)
    for part in range(3):
        for queue in QUEUES:
            for i in range(150):
                text = body(f"original-{part}", i)
                send(client, queue, text)
                held[queue].add(text)
        if part < 2:
            status, _, said = run(binary, "backup", "--data", data, "--to", f"{data}.backup{part}")
            assert status == 0, said
    client.close()
    server.kill()
    os.remove(os.path.join(data, "control.sock"))
    return held


class Traced(Server):
    """A server under strace: from its first call on, or only once it is ready."""

    def __init__(self, binary, data, phase, inject):
        super().__init__(binary, data, ["--shards", "1"])
        self.strace = ["strace", "-f", "-qq", "-o", data + ".trace", *inject]
        self.phase = phase
        self.tracer = None

    def spawn(self):
        command = [self.binary, "serve", "--data", self.data, "--listen", "127.0.0.1:0"]
        under = self.strace if self.phase == "start" else []
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(under + command + self.options, stderr=log,
                                            stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._read, args=(self.process,), daemon=True).start()

    def attach(self):
        """From here on calls fail, and are counted."""
        if self.phase == "start":
            return
        self.tracer = subprocess.Popen([*self.strace, "-p", str(self.process.pid)],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.time() + 20
        while self.process.poll() is None and time.time() < deadline:
            if all(map(self.is_traced, os.listdir(f"/proc/{self.process.pid}/task"))):
                return
            time.sleep(0.01)

    def is_traced(self, thread):
        try:
            with open(f"/proc/{self.process.pid}/task/{thread}/status", encoding="ascii") as file:
                return "TracerPid:\t0\n" not in file.read()
        except OSError:
            return True  # It is gone.

    def tell_to_stop(self):
        """False if it had ended. strace does not forward signals."""
        pid = self.process.pid
        if self.phase == "start":
            try:
                with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
                    found = children.read().split()
            except OSError:
                return False  # So has strace.
            if not found:
                return False
            pid = int(found[0])
        try:
            os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            return False
        return True


def exercise(server, binary, data, tag, held):
    """Sends, a backup, sends again, and a stop: (exit status, whether it was told to stop)."""
    server.spawn()
    address = None
    deadline = time.time() + CASE_SECONDS_MAX
    while time.time() < deadline and server.process.poll() is None and address is None:
        address = server.find(0.2)
    if address is not None:
        server.attach()
        client = Client(lambda: address)
        for part in range(2):
            for i in range(SENDS):
                for queue in QUEUES:
                    text = body(f"{tag}-{part}", i)
                    try:
                        send(client, queue, text)
                        held[queue].add(text)
                    except (Refused, Doubt, NotSent):
                        pass
            if part == 0:
                run(binary, "backup", "--data", data, "--to", data + ".backup", timeout=60)
        client.close()
    told = server.process.poll() is None and server.tell_to_stop()
    try:
        server.process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        server.process.kill()
    status = server.process.wait()
    if server.tracer is not None:
        server.tracer.wait()
    return status, told


def drain(client, queue):
    bodies = set()
    while True:
        answer = client.call("ReceiveMessage", QueueUrl=queue, MaxNumberOfMessages=10,
                             VisibilityTimeout=600)
        messages = answer.get("Messages", [])
        if not messages:
            return bodies
        bodies |= {message["Body"] for message in messages}
        client.call("DeleteMessageBatch", QueueUrl=queue, Entries=[
            {"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]} for i, m in enumerate(messages)])


def count_calls(binary, original, directory, phase):
    """How often each thread makes each call at most, when nothing fails."""
    data = os.path.join(directory, "counted-" + phase)
    shutil.copytree(original, data)
    server = Traced(binary, data, phase, ["-e", "trace=" + ",".join(CALLS)])
    status, _ = exercise(server, binary, data, "counted", collections.defaultdict(set))
    if status != 0:
        sys.exit(f"without a fault it ended with {status}: {server.log_tail()}")
    return cases.most_calls(data + ".trace", CALLS)


def play(binary, original, held_before, directory, case):
    """What is wrong after this case, or None."""
    phase, call, error, when = case
    name = f"{phase}-{call}-{error}-{when}"
    data = os.path.join(directory, name)
    shutil.copytree(original, data)
    held = {queue: set(bodies) for queue, bodies in held_before.items()}
    inject = ["-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={when}"]
    server = Traced(binary, data, phase, inject)
    status, told = exercise(server, binary, data, name, held)
    said = server.log_tail()
    if status < 0 or status in (134, 139) or "ssertion" in said or "check failed" in said:
        return f"it ended by itself with status {status}: {said}"
    if status != 0 and not said:
        return f"it ended with {status} and said nothing"
    if status != 0 and error == "EINTR":
        return f"it ended with {status}, although only a signal interrupted it: {said}"
    if status == 0 and not told:
        return f"it ended with 0 although nobody told it to: {said}"
    again = Server(binary, data, ["--shards", "1"])
    again.log_path = data + ".again.log"
    client = Client(again.find)
    try:
        again.start()
        for queue in QUEUES:
            missing = held[queue] - drain(client, queue)
            if missing:
                return f"{len(missing)} of {queue} are lost, {sorted(missing)[0][:40]} …; {said}"
    except (StartFailed, Refused, Doubt, NotSent) as error_after:
        return f"afterwards: {error_after}; before: {said}"
    finally:
        client.close()
        again.kill()
    for left in (data, data + ".backup"):
        shutil.rmtree(left, ignore_errors=True)
    return None


def check_silent_start(binary, directory):
    """A start that fails, and whose message cannot be written."""
    file = os.path.join(directory, "a-file")
    with open(file, "w", encoding="utf-8") as out:
        out.write("not a directory\n")
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([binary, "serve", "--data", file, "--listen", "127.0.0.1:0"],
                              stdout=subprocess.DEVNULL, stderr=full, timeout=60, check=False)
    return None if done.returncode == 1 else f"it ended with {done.returncode}"


def cases_of(most):
    return [(phase, call, error, when) for phase in PHASES for call, errors in CALLS.items()
            for error in errors for when in range(1, most[phase][call] + 1)]


def main():
    parser = cases.parser(__doc__, 2 * len(CALLS))
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default=None, help="one case, as run:pread64:EIO:5")
    options = parser.parse_args()
    seed = cases.seed_of(options)

    def find_cases(original, directory):
        if options.only:
            phase, call, error, when = options.only.split(":")
            return [(phase, call, error, int(when))]
        most = {phase: count_calls(options.binary, original, directory, phase) for phase in PHASES}
        every = cases_of(most)
        if options.all:
            return every
        # A listing that fails in the middle once ended the process, in one call of many.
        sure = [case for case in every if case[:3] == ("start", "getdents64", "EIO")]
        # The first sync of each thread, of which one is the journal's, and the store's of directories.
        sure += [case for case in every if case[0] == "run" and case[2:] == ("EINTR", 1)]
        return sure + cases.choose(every, lambda case: case[:2], options.cases,
                                       random.Random(seed))

    def play_all(directory, tally):
        original = os.path.join(directory, "original")
        held = make_original(options.binary, original)
        chosen = find_cases(original, directory)
        print(f"seed {seed}: {len(chosen)} cases", flush=True)
        for case in chosen:
            tally.note(":".join(map(str, case)), play(options.binary, original, held, directory, case),
                       quiet=not options.all)
        tally.note("a start whose message cannot be written",
                   check_silent_start(options.binary, directory))

    return cases.play_in_scratch("fault", play_all)


if __name__ == "__main__":
    sys.exit(main())
