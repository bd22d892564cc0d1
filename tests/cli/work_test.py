#!/usr/bin/env python3
"""Runs `stanchion work` against the real server, with commands that succeed, fail, hang or do not exist.

    work_test.py --binary build/release/stanchion [NAME...]

Standard library only. The last line says how many tests passed and failed.
"""
import contextlib
import json
import os
import signal
import subprocess
import sys

from case import Case, check, run_tests, tests_of
from server import Server, clean_environment
from signed_client import Client

COUNTS = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]

# Blocked, the signal cannot come before the program waits for it.
WAITS_FOR_SIGTERM = """import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
print("begun", flush=True)
signal.sigwait([signal.SIGTERM])
print("told", flush=True)
"""


class WorkCase(Case):
    @contextlib.contextmanager
    def served(self):
        with Server(self.binary, "--listen", "127.0.0.1:0", "--threads", "1", "--in-memory",
                    cwd=self.directory) as server:
            self.client = Client(server.url)
            yield server

    def queue(self, name, **attributes):
        return self.client.call("CreateQueue", QueueName=name, Attributes=attributes)["QueueUrl"]

    def send(self, url, *bodies):
        for body in bodies:
            self.client.call("SendMessage", QueueUrl=url, MessageBody=body)

    def left(self, url):
        """How many are visible and how many are in flight."""
        counts = self.client.call("GetQueueAttributes", QueueUrl=url, AttributeNames=COUNTS)
        return [int(counts["Attributes"][name]) for name in COUNTS]

    @contextlib.contextmanager
    def working(self, url, command, *flags):
        """The worker, whose children print on the pipe from which the test reads lines."""
        process = subprocess.Popen(
            [self.binary, "work", "--queue-url", url, "--exec", command, *flags], text=True,
            cwd=self.directory, env=clean_environment({}), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        try:
            first = process.stdout.readline()
            check(first == "working\n", first)
            yield process
        finally:
            process.kill()
            process.communicate()


def finish(process):
    """SIGTERM, and what was printed until the end."""
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=60)
    check(process.returncode == 0, (process.returncode, errors))
    return output, errors


def each_message_is_the_input_of_a_process_and_then_deleted(case):
    with case.served():
        url = case.queue("jobs")
        case.send(url, *[f"job {i}" for i in range(30)])
        with case.working(url, 'echo "$(cat) $SQS_QUEUE_NAME $SQS_RECEIVE_COUNT $SQS_POISON"') as worker:
            lines = sorted(worker.stdout.readline() for _ in range(30))
            check(lines == sorted(f"job {i} jobs 1 0\n" for i in range(30)), lines)
            finish(worker)
        check(case.left(url) == [0, 0], case.left(url))


def a_process_that_fails_is_retried_until_the_dead_letter_queue_has_the_message(case):
    with case.served():
        dead = case.queue("dead")
        arn = case.client.call("GetQueueAttributes", QueueUrl=dead, AttributeNames=["QueueArn"])
        policy = {"deadLetterTargetArn": arn["Attributes"]["QueueArn"], "maxReceiveCount": 2}
        url = case.queue("main", RedrivePolicy=json.dumps(policy))
        case.send(url, "bad")
        with case.working(url, 'echo "$SQS_QUEUE_NAME $SQS_POISON"; test $SQS_POISON = 1',
                          "--poison-queue-url", dead) as worker:
            lines = [worker.stdout.readline() for _ in range(3)]
            check(lines == ["main 0\n", "main 0\n", "dead 1\n"], lines)
            _, errors = finish(worker)
            check(errors.count("ended with 1; the message is retried") == 2, errors)
        check(case.left(url) == [0, 0] and case.left(dead) == [0, 0])


def the_reject_code_sends_the_message_to_another_queue(case):
    with case.served():
        url, other = case.queue("main"), case.queue("rejected")
        case.send(url, "odd")
        with case.working(url, "echo begun; exit 3", "--reject-code", "3", "--reject-to",
                          other) as worker:
            check(worker.stdout.readline() == "begun\n")
            finish(worker)
        check(case.left(url) == [0, 0] and case.left(other) == [1, 0])


def sigterm_finishes_what_is_in_hand(case):
    with case.served():
        url = case.queue("main")
        case.send(url, "long")
        os.mkfifo(case.directory / "go")
        with case.working(url, "echo begun; cat go; echo ended") as worker:
            check(worker.stdout.readline() == "begun\n")
            worker.send_signal(signal.SIGTERM)
            check(worker.stdout.readline().startswith("stopping when the jobs in hand"))
            (case.directory / "go").write_text("")
            output, errors = worker.communicate(timeout=60)
            check((worker.returncode, output, errors) == (0, "ended\n", ""), (output, errors))
        check(case.left(url) == [0, 0], case.left(url))


def a_second_sigterm_ends_the_processes_and_gives_their_messages_back(case):
    with case.served():
        url = case.queue("main")
        case.send(url, "endless")
        program = case.file("endless.py", WAITS_FOR_SIGTERM)
        with case.working(url, f"exec python3 {program}") as worker:
            check(worker.stdout.readline() == "begun\n")
            worker.send_signal(signal.SIGTERM)
            check(worker.stdout.readline().startswith("stopping when the jobs in hand"))
            output, _ = finish(worker)
            check(output == "told\n", output)
        check(case.left(url) == [1, 0], case.left(url))


def a_process_that_hangs_is_killed_after_the_timeout_and_its_message_comes_again(case):
    with case.served():
        url = case.queue("main")
        case.send(url, "hangs")
        command = 'echo "try $SQS_RECEIVE_COUNT"; test $SQS_RECEIVE_COUNT = 2 || sleep 1000'
        with case.working(url, command, "--timeout", "1") as worker:
            lines = [worker.stdout.readline() for _ in range(2)]
            check(lines == ["try 1\n", "try 2\n"], lines)
            _, errors = finish(worker)
            check("took longer than --timeout 1 and was killed" in errors, errors)
        check(case.left(url) == [0, 0], case.left(url))


def what_cannot_work_is_said_clearly(case):
    with case.served() as server:
        url = case.queue("main")
        status, _, errors = case.run("work", "--queue-url", server.url + "/000000000000/missing",
                                     "--exec", "true")
        check(status == 1 and "QueueDoesNotExist" in errors and "/missing" in errors, errors)
        status, _, errors = case.run("work", "--queue-url", url, "--exec", "true", "--reject-code", "3")
        check(status == 2 and "--reject-code and --reject-to need each other" in errors, errors)
        case.send(url, "a")
        with case.working(url, "no-such-command") as worker:
            check("no-such-command" in worker.stderr.readline())
            _, errors = finish(worker)
            check("ended with 127: the shell did not find a command" in errors, errors)
        check(sum(case.left(url)) == 1, "the message is lost")


if __name__ == "__main__":
    sys.exit(run_tests(tests_of(globals()), __doc__, WorkCase))
