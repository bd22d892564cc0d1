#!/usr/bin/env python3
"""Backs up servers, running under load and stopped, and starts others on what comes out.

    backup_test.py --binary build/release/stanchion [NAME...]

Standard library only. The last line says how many tests passed and failed.
"""
import collections
import http.client
import json
import os
import pathlib
import shutil
import socket
import stat
import sys
import tempfile
import threading
import time
import traceback

from case import check, run_tests, tests_of
from signed_client import Client, Refused

ARN = "arn:aws:sqs:us-east-1:000000000000:"
PAIRS = 6  # Queues with a dead-letter queue each, which mostly lives on another shard.
BACKUPS = 3
SENDS_BETWEEN = 400
ROUNDS_MAX = 40


class Ledger:
    """What the clients sent and deleted, before and after it was acknowledged."""

    def __init__(self):
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        self.sets = collections.defaultdict(set)
        self.next = 0

    def new_body(self, kind):
        with self.lock:
            self.next += 1
            return f"{kind}-{self.next:08}"

    def note(self, what, *bodies):
        with self.changed:
            self.sets[what].update(bodies)
            self.changed.notify_all()

    def snapshot(self):
        with self.lock:
            return {what: set(self.sets[what]) for what in ("sending", "sent", "deleting", "deleted")}

    def wait_for_sends(self, more):
        with self.changed:
            target = len(self.sets["sent"]) + more
            check(self.changed.wait_for(lambda: len(self.sets["sent"]) >= target, timeout=60))


class Load:
    """Clients that go on until they are told to stop, each on a thread."""

    def __init__(self, url, ledger):
        self.client, self.ledger = Client(url), ledger
        self.stopping = threading.Event()
        self.problems = []
        jobs = [self.send_and_delete, self.send_in_order]
        jobs += [lambda pair=pair: self.make_dead_letters(pair) for pair in range(PAIRS)]
        self.threads = [threading.Thread(target=self.guarded, args=(job,)) for job in jobs]

    def url(self, queue):
        return f"{self.client.url.geturl()}/000000000000/{queue}"

    def guarded(self, job):
        try:
            while not self.stopping.is_set():
                job()
        except Exception:  # noqa: BLE001: told by stop()
            self.problems.append(traceback.format_exc())

    def send(self, queue, **more):
        body = self.ledger.new_body(queue)
        self.ledger.note("sending", body)
        self.client.call("SendMessage", QueueUrl=self.url(queue), MessageBody=body, **more)
        self.ledger.note("sent", body)
        return body

    def receive(self, queue, **more):
        return self.client.call("ReceiveMessage", QueueUrl=self.url(queue), MaxNumberOfMessages=10,
                                **more).get("Messages", [])

    def send_and_delete(self):
        for _ in range(3):
            self.send("work")
        messages = self.receive("work")[:2]
        self.ledger.note("deleting", *(m["Body"] for m in messages))
        for message in messages:
            self.client.call("DeleteMessage", QueueUrl=self.url("work"),
                             ReceiptHandle=message["ReceiptHandle"])
            self.ledger.note("deleted", message["Body"])

    def send_in_order(self):
        body = self.ledger.next
        self.send("line.fifo", MessageGroupId=f"group-{body % 3}",
                  MessageDeduplicationId=f"id-{time.monotonic_ns()}")

    def make_dead_letters(self, pair):
        for _ in range(5):
            self.send(f"source-{pair}")
        for _ in range(2):
            self.receive(f"source-{pair}", VisibilityTimeout=0)
        try:
            self.client.call("StartMessageMoveTask", SourceArn=f"{ARN}dead-{pair}")
        except Refused as refused:
            # One at a time.
            check(refused.status == 400 and "active" in refused.message, refused)

    def create(self):
        def create(name, **attributes):
            self.client.call("CreateQueue", QueueName=name, Attributes=attributes)
        create("work")
        create("late")
        create("in-flight")
        create("line.fifo", FifoQueue="true")
        for pair in range(PAIRS):
            create(f"dead-{pair}")
            policy = json.dumps({"deadLetterTargetArn": f"{ARN}dead-{pair}", "maxReceiveCount": 1})
            create(f"source-{pair}", RedrivePolicy=policy)

    def start(self):
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(60)
        check(not self.problems, "".join(self.problems))


QUEUES = (["work", "late", "in-flight", "line.fifo"] + [f"source-{i}" for i in range(PAIRS)] +
          [f"dead-{i}" for i in range(PAIRS)])


def advance(url, seconds):
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    connection.request("POST", "/_stanchion/clock", json.dumps({"advanceSeconds": seconds}),
                       {"X-Stanchion-Control": "1"})
    response = connection.getresponse()
    check(response.status == 200, response.read())
    connection.close()


def drain(url):
    """Receives and deletes everything: body -> how often, and the bodies of the FIFO queue in order
    of their groups."""
    client = Client(url)
    found, order, quiet = collections.Counter(), collections.defaultdict(list), 0
    for _ in range(ROUNDS_MAX):
        advance(url, 3600)  # Past every delay and visibility timeout.
        before = found.total()
        for queue in QUEUES:
            where = f"{url}/000000000000/{queue}"
            while messages := client.call(
                    "ReceiveMessage", QueueUrl=where, MaxNumberOfMessages=10,
                    MessageSystemAttributeNames=["All"]).get("Messages"):
                for message in messages:
                    found[message["Body"]] += 1
                    if group := message["Attributes"].get("MessageGroupId"):
                        order[group].append(message["Body"])
                done = client.call("DeleteMessageBatch", QueueUrl=where, Entries=[
                    {"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]}
                    for i, m in enumerate(messages)])
                check(not done.get("Failed"), done)
        quiet = quiet + 1 if found.total() == before else 0
        if quiet == 3:
            return found, order
    raise AssertionError("it does not become empty")


def serve(case, data, *more):
    return case.serve("--data", str(data), "--listen", "127.0.0.1:0", "--threads", "2", *more)


def back_up(case, data, to):
    status, output, errors = case.run("backup", "--data", str(data), "--to", str(to))
    check(status == 0 and errors == "", (status, output, errors))
    check(output == f"{to} is a complete backup of {data}\n", output)


def check_backup(case, data, before, after):
    """`before` and `after`: what the clients knew when the backup began and when it was done."""
    status, output, _ = case.run("inspect", str(data))
    check(status == 0, output)
    with serve(case, data, "--virtual-time") as server:
        try:
            found, order = drain(server.url)
        except ConnectionError as error:
            raise AssertionError(server.stop()) from error
    doubled = [body for body, count in found.items() if count > 1]
    check(not doubled, f"doubled: {sorted(doubled)[:10]} of {len(doubled)}")
    lost = before["sent"] - after["deleting"] - found.keys()
    check(not lost, f"lost: {sorted(lost)[:10]} of {len(lost)} of {len(before['sent'])}")
    risen = found.keys() & before["deleted"]
    check(not risen, f"deleted before: {sorted(risen)[:10]} of {len(risen)}")
    unknown = found.keys() - after["sending"]
    check(not unknown, f"never sent: {sorted(unknown)[:10]}")
    for bodies in order.values():
        check(bodies == sorted(bodies), "out of order")


def backups_under_load_are_whole_and_start(case):
    data = case.directory / "data"
    ledger = Ledger()
    made = []
    with serve(case, data, "--shards", "4") as server:
        load = Load(server.url, ledger)
        load.create()
        for _ in range(20):
            load.send("late", DelaySeconds=900)
            load.send("in-flight")
        check(load.receive("in-flight", VisibilityTimeout=3000))
        load.start()
        for number in range(BACKUPS):
            ledger.wait_for_sends(SENDS_BETWEEN)
            before = ledger.snapshot()
            back_up(case, data, case.directory / f"backup-{number}")
            made.append((before, ledger.snapshot()))
        ledger.wait_for_sends(SENDS_BETWEEN)
        load.stop()
        check(not (data / "backup.tmp").exists())
        status, log = server.stop()
        check(status == 0, log)
    for number, (before, after) in enumerate(made):
        check_backup(case, case.directory / f"backup-{number}", before, after)
    # The server that was backed up still has everything, too.
    now = ledger.snapshot()
    check_backup(case, data, now, now)


def a_backup_of_a_stopped_server_is_restored_by_copying_it(case):
    data, backup, restored = (case.directory / name for name in ("data", "backup", "restored"))
    ledger = Ledger()
    with serve(case, data, "--shards", "2") as server:
        load = Load(server.url, ledger)
        load.create()
        bodies = [load.send("work") for _ in range(25)]
        # So that there is a checkpoint, and a journal after it.
        back_up(case, data, case.directory / "first")
        bodies += [load.send("line.fifo", MessageGroupId="g", MessageDeduplicationId=str(i))
                   for i in range(25)]
    back_up(case, data, backup)
    shutil.rmtree(data)
    shutil.copytree(backup, restored)
    now = ledger.snapshot()
    check(len(now["sent"]) == len(bodies) == 50)
    with serve(case, restored) as server:
        check("loaded 16 queues: " in server.wait_for_log("loaded"), server.log)
    check_backup(case, restored, now, now)
    # Using the copy has not changed the backup.
    check_backup(case, backup, now, now)


def refused(case, words, *arguments):
    status, output, errors = case.run("backup", *arguments)
    check(status == 1 and output == "", (status, output))
    check(errors.startswith("stanchion: no backup was made: ") and words in errors, errors)


def what_cannot_be_backed_up_is_refused_and_nothing_is_left(case):
    data, file, full = case.directory / "data", case.file("file", "x"), case.directory / "full"
    full.mkdir()
    (full / "something").write_text("of mine")
    refused(case, "No such file", "--data", str(data), "--to", "b")
    refused(case, "is not a data directory", "--data", str(full), "--to", "b")
    check(os.listdir(full) == ["something"])
    for running in (True, False):
        with serve(case, data) as server:
            if not running:
                server.stop()
            refused(case, "is not a directory", "--data", str(data), "--to", file)
            refused(case, "Not a directory", "--data", str(data), "--to", f"{file}/b")
            refused(case, "is not empty", "--data", str(data), "--to", str(full))
            check(os.listdir(full) == ["something"])
            refused(case, "/proc/b", "--data", str(data), "--to", "/proc/b")
            back_up(case, data, case.directory / f"good-{running}")
    check(case.run("backup", "--data", str(data))[0] == 2)


def a_backup_that_fails_leaves_no_directories_behind(case):
    data, above = case.directory / "data", case.directory / "above"
    with serve(case, data) as server:
        server.stop()
    # What no server starts on is refused before anything is made …
    moved = (data / "shard-000").rename(case.directory / "shard-000")
    refused(case, "shard 0 is damaged", "--data", str(data), "--to", str(above / "and" / "b"))
    check(not above.exists(), "directories are left")
    moved.rename(data / "shard-000")
    # … and if the copying fails, what was made for it is removed, and nothing else.
    shutil.rmtree(data / "shard-001" / "store", ignore_errors=True)
    (data / "shard-001" / "store").write_text("no directory")
    arguments = ("--no-check", "--data", str(data), "--to", str(above / "and" / "b"))
    refused(case, "Not a directory", *arguments)
    check(not above.exists(), "directories are left")
    (above / "mine").mkdir(parents=True)
    refused(case, "Not a directory", *arguments)
    check(os.listdir(above) == ["mine"], os.listdir(above))


def a_backup_by_a_running_server_is_complete_also_without_a_check(case):
    data, to = case.directory / "data", case.directory / "to"
    arguments = ("backup", "--no-check", "--data", str(data), "--to")
    with serve(case, data):
        status, output, errors = case.run(*arguments, str(to))
        check((status, output) == (0, f"{to} is a complete backup of {data}\n"), output + errors)
    status, output, errors = case.run(*arguments, f"{to}-2")
    check(status == 0 and "stanchion inspect shows what is readable" in output, output + errors)


def a_backup_goes_to_another_file_system_too(case):
    data = case.directory / "data"
    with serve(case, data) as server:
        load = Load(server.url, Ledger())
        load.create()
        # Hard links are impossible there, so tables are copied.
        small = pathlib.Path(tempfile.mkdtemp(prefix="stanchion-backup-", dir="/dev/shm"))
        try:
            back_up(case, data, small / "copied")
            with serve(case, small / "copied") as other:
                names = Client(other.url).call("ListQueues")["QueueUrls"]
                check(len(names) == len(QUEUES), names)
        finally:
            shutil.rmtree(small)
        load.send("work")


def an_unfinished_backup_is_not_started(case):
    data, backup = case.directory / "data", case.directory / "backup"
    with serve(case, data):
        back_up(case, data, backup)
    (backup / "stanchion.meta").unlink()
    status, _, errors = case.run("serve", "--data", str(backup), "--listen", "127.0.0.1:0")
    check(status == 1 and "a backup that was not finished" in errors, errors)


def the_control_socket_is_for_the_owner_and_goes_with_the_server(case):
    data = case.directory / "data"
    path = data / "control.sock"
    with serve(case, data) as server:
        check(stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_ISSOCK(path.stat().st_mode))
        for request, status in ((b"GET /backup", b"405"), (b"POST /", b"404"),
                                (b"POST /backup", b"400")):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(path))
                connection.sendall(request + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
                check(connection.recv(1000).startswith(b"HTTP/1.1 " + status), request)
        server.process.kill()
        server.process.wait()
    check(path.exists())
    back_up(case, data, case.directory / "of-the-killed")
    with serve(case, data):
        back_up(case, data, case.directory / "of-the-next")
    check(not path.exists())


def connections_that_say_nothing_do_not_prevent_a_backup(case):
    data = case.directory / "data"
    with serve(case, data):
        silent = []
        try:
            for i in range(300):
                silent.append(socket.socket(socket.AF_UNIX))
                silent[-1].connect(str(data / "control.sock"))
                if i % 2:
                    silent[-1].sendall(b"POST /backup HT")
            for number in range(3):
                back_up(case, data, case.directory / f"backup-{number}")
        finally:
            for connection in silent:
                connection.close()


def a_backup_does_not_go_among_the_files_of_the_server(case):
    data = case.directory / "data"
    link = case.directory / "link"
    with serve(case, data) as server:
        link.symlink_to(data / "shard-000")
        for running in (True, False):
            if not running:
                server.stop()
            shard = data / "shard-000"
            for place in (shard, shard / "b", shard / "b" / "c", shard / ".." / "shard-000" / "b",
                          link / "b", data / "shard-999", data / "metrics" / "b",
                          data / "backup.tmp", data / "backup.tmp" / "b"):
                refused(case, "which the server uses itself", "--data", str(data), "--to", str(place))
            left = [path for path in data.rglob("*") if path.name in ("b", "shard-999", "backup.tmp")]
            check(not left, left)
            # Beside them, a backup is in nobody's way.
            back_up(case, data, data / "backups" / f"running-{running}")
    with serve(case, data / "backups" / "running-True"):
        pass


def a_path_too_long_for_a_socket_stops_no_start(case):
    data = case.directory / ("d" * 120)
    with serve(case, data) as server:
        server.wait_for_log("no backups while the server runs: ")
        refused(case, "cannot be asked for a backup", "--data", str(data), "--to", "b")
    back_up(case, data, case.directory / "b")


if __name__ == "__main__":
    sys.exit(run_tests(tests_of(globals()), __doc__))
