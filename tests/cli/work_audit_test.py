#!/usr/bin/env python3
"""Audits `stanchion work`: workers killed in mid-job, a server that restarts, commands that fail, hang
and are killed. Every command writes into a file when it begins and when it ends; at the end the file
must show that no message was lost, that none was handled twice at the same time, and that groups kept
their order.

    work_audit_test.py --binary build/release/stanchion [NAME...]

Standard library only. The last line says how many tests passed and failed.
"""
import collections
import contextlib
import os
import signal
import sys
import time

from case import ACCOUNTS, ALICE, IN_MEMORY, check, run_tests, tests_of
from signed_client import Client
from virtual_time import advance
from work_kit import PATIENCE, WorkCase

# Appends single lines, which the kernel keeps whole. `what` is the body; its first word says what to
# do, unless there is a reason to stay.
COMMAND = """#!/bin/sh
what=$(cat)
say() { echo "$1 $SQS_MESSAGE_ID $SQS_RECEIVE_COUNT $$ $PPID $what" >> effects; }
say begin
trap 'say end; exit 1' TERM
test -z "$STUCK" || { sleep 1000 & wait; }
case "$what" in
  fail*) say end; exit 1 ;;
  once*) test $SQS_RECEIVE_COUNT -gt 1 || { say end; exit 1; } ;;
  killed*) say end; kill -9 $$ ;;
  hang*) sleep 1000 & wait ;;
  wait*) cat go ;;
esac
say done
"""
Line = collections.namedtuple("Line", "what id count pid worker body")


class AuditCase(WorkCase):
    def command(self):
        path = self.directory / "handle"
        path.write_text(COMMAND)
        path.chmod(0o755)
        return f"exec {path}"

    def effects(self):
        path = self.directory / "effects"
        if not path.exists():
            return []
        return [Line(*line.split(" ", 5)) for line in path.read_text().splitlines()]

    def wait_for_effects(self, enough):
        """Until `enough` accepts what was recorded."""
        deadline = time.monotonic() + 2 * PATIENCE
        while not enough(lines := self.effects()):
            check(time.monotonic() < deadline, "\n".join(map(str, lines)))
            time.sleep(0.02)
        return lines

    def wait_until_left(self, url, counts):
        """Until so many messages are visible and so many in flight."""
        deadline = time.monotonic() + 2 * PATIENCE
        while self.left(url) != counts:
            check(time.monotonic() < deadline, self.left(url))
            time.sleep(0.05)

    def audit(self, bodies, tries_of=lambda body: None):
        """Every message once, except those that must have so many tries and no success; never two
        commands for one message at the same time."""
        by_body = collections.defaultdict(list)
        for line in self.effects():
            by_body[line.body].append(line)
        check(set(by_body) == set(bodies), set(by_body) ^ set(bodies))
        for body, lines in by_body.items():
            whats = [line.what for line in lines]
            check(whats[0::2] == ["begin"] * len(whats[0::2]), (body, whats))
            check("begin" not in whats[1::2], (body, whats))
            if (tries := tries_of(body)) is None:
                check(whats.count("done") == 1 and whats[-1] == "done", (body, whats))
            else:
                check(whats == ["begin", "end"] * tries, (body, whats))


def counted(what, count):
    return lambda lines: sum(line.what == what for line in lines) >= count


def a_worker_killed_in_mid_job_loses_nothing_and_the_next_one_does_each_job_once(case):
    bodies = [f"ok {i}" for i in range(20)]
    command = case.command()
    with case.serve_config(IN_MEMORY.replace("threads = 1", "threads = 1\nvirtual_time = true")) as server:
        case.client = Client(server.url)
        url = case.queue("jobs", VisibilityTimeout="30")
        case.send(url, *bodies)
        with case.work(url, "--exec", command, environment={"STUCK": "1"}) as worker:
            begun = case.wait_for_effects(counted("begin", 10))
            worker.signal(signal.SIGKILL)
            worker.process.wait()
        # Its commands go on by themselves, and are ended here as a machine that fails would.
        for line in begun:
            os.killpg(int(line.pid), signal.SIGKILL)
        check(case.left(url) == [10, 10], case.left(url))
        with (case.directory / "effects").open("a") as file:
            for line in begun:
                print("end", *line[1:], file=file)
        with case.work(url, "--exec", command) as worker:
            case.wait_for_effects(counted("done", 10))
            # What is done is deleted a little later, and must not become visible before.
            case.wait_until_left(url, [0, 10])
            advance(server.url, 31)
            case.wait_for_effects(counted("done", 20))
            worker.finish()
        check(case.left(url) == [0, 0], case.left(url))
    case.audit(bodies)
    again = {line.body for line in case.effects() if line.count == "2"}
    check(again == {line.body for line in begun}, again)


def jobs_go_on_while_the_server_is_killed_and_restarted(case):
    bodies = [f"wait {i}" for i in range(10)]
    os.mkfifo(case.directory / "go")
    flags = ["--listen", "127.0.0.1:0", "--threads", "1", "--data", "data"]
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(case.serve(*flags))
        case.client = Client(server.url)
        url = case.queue("jobs", VisibilityTimeout="120")
        case.send(url, *bodies)
        with case.work(url, "--exec", case.command()) as worker:
            case.wait_for_effects(counted("begin", 10))
            server.process.kill()
            server.process.wait()
            # All readers have opened it, so that each gets the end.
            (case.directory / "go").write_text("")
            while sum(line.what == "done" for line in case.effects()) < 10:
                with contextlib.suppress(OSError):
                    os.close(os.open(case.directory / "go", os.O_WRONLY | os.O_NONBLOCK))
                time.sleep(0.02)
            worker.log.find("cannot delete")
            flags[1] = server.url.removeprefix("http://")
            stack.enter_context(case.serve(*flags))
            worker.finish()
        check(case.left(url) == [0, 0], case.left(url))
    case.audit(bodies)
    check(all(line.count == "1" for line in case.effects()), case.effects())


def poison_is_in_the_dead_letter_queue_after_exactly_so_many_tries(case):
    bad = [f"{kind} {i}" for kind in ("fail", "killed", "hang") for i in range(3)]
    good = [f"ok {i}" for i in range(20)] + [f"once {i}" for i in range(5)]
    with case.served():
        url, dead = case.with_dead_letters("jobs", 3, VisibilityTimeout="60")
        case.send(url, *good, *bad)
        with case.work(url, "--exec", case.command(), "--timeout", "10", "--concurrency",
                       "16") as worker:
            case.wait_for_effects(lambda lines: counted("done", len(good))(lines)
                                  and sum(line.what == "end" for line in lines) >= 3 * len(bad) + 5)
            log = worker.finish()
        check("was ended by signal 9 (Killed); the message is retried" in log, log)
        check("took longer than --timeout 10 and was killed" in log, log)
        # A message moves when it would be received for the fourth time.
        deadline = time.monotonic() + PATIENCE
        while sum(case.left(dead)) < len(bad):
            check(time.monotonic() < deadline, (case.left(url), case.left(dead)))
            check("Messages" not in case.client.call("ReceiveMessage", QueueUrl=url))
            time.sleep(0.05)
        check(case.left(url) == [0, 0], case.left(url))
        check(sorted(case.drain(dead)) == sorted(bad))
    case.audit(good + bad, lambda body: 3 if body in bad else None)


def groups_keep_their_order_though_jobs_fail(case):
    bodies = {group: [f"{'once' if i % 3 == 0 else 'ok'} {group} {i}" for i in range(8)]
              for group in "abcde"}
    with case.served():
        url = case.queue("jobs.fifo", FifoQueue="true", VisibilityTimeout="60")
        for group, each in bodies.items():
            case.send_fifo(url, group, *each)
        with case.work(url, "--exec", case.command()) as first, \
                case.work(url, "--exec", case.command()) as second:
            lines = case.wait_for_effects(counted("done", 40))
            first.finish()
            second.finish()
        check(case.left(url) == [0, 0], case.left(url))
    case.audit(sum(bodies.values(), []))
    for group, each in bodies.items():
        own = [line for line in lines if line.body.split()[1] == group]
        check([line.body for line in own if line.what == "done"] == each, own)
        # One after the other, also among different messages of the group.
        check(all(line.what == "begin" for line in own[0::2]), own)
        check(all(line.what != "begin" for line in own[1::2]), own)


def keys_that_expire_are_said_and_nothing_is_lost(case):
    """A message that is done while its delete is refused comes again: that is the price of the key."""
    own = '[[account.key]]\nid = "AKIAWORKER"\nsecret = "worker-secret"\n'
    with_key = IN_MEMORY + ACCOUNTS.replace("[[account.key]]", own + "[[account.key]]", 1)
    keys = {"AWS_ACCESS_KEY_ID": "AKIAWORKER", "AWS_SECRET_ACCESS_KEY": "worker-secret",
            "AWS_REGION": "us-east-1"}
    with case.serve_config(with_key) as server:
        case.client = Client(server.url, ALICE)
        url = case.queue("jobs", VisibilityTimeout="2")
        case.send(url, "ok 1")
        with case.work(url, "--exec", case.command(), environment=keys) as worker:
            case.wait_for_effects(counted("done", 1))
            case.wait_until_empty(url)
            case.file("s.toml", IN_MEMORY + ACCOUNTS)
            server.reload("reloaded")
            # The poll that is under way still gets this one.
            case.send(url, "ok 2")
            line = worker.log.find("The security token included in the request is invalid")
            check("jobs: cannot " in line and "403" in line, line)
            case.file("s.toml", with_key)
            server.reload("reloaded")
            case.send(url, "ok 3")
            case.wait_until_empty(url)
            worker.end(signal.SIGTERM)
        done = {line.body for line in case.effects() if line.what == "done"}
        check(done == {"ok 1", "ok 2", "ok 3"}, done)


if __name__ == "__main__":
    sys.exit(run_tests(tests_of(globals()), __doc__, AuditCase))
