#!/usr/bin/env python3
"""Runs `stanchion work` against the real server, with commands that succeed, fail, hang or do not exist.

    work_test.py --binary build/release/stanchion [NAME...]

Standard library only. The last line says how many tests passed and failed.
"""
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import urllib.error
import urllib.request

from case import check, run_tests, tests_of
from server import clean_environment
from work_kit import PATIENCE, WorkCase

# Blocked, the signal cannot come before the program waits for it.
WAITS_FOR_SIGTERM = """import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
print("begun", flush=True)
signal.sigwait([signal.SIGTERM])
print("told", flush=True)
"""

# SIGTERM ends the shell that runs this, but not what it has started.
OUTLIVES = """sh -c 'trap "" TERM; touch begun; echo "begun $$"; exec sleep 1000' & wait"""

# Answers by what the body says; prints what it does on standard error.
LINES = """import json, os, signal, sys, time
def say(text):
    os.write(2, (text + "\\n").encode())  # In one piece: the worker writes to the same pipe.
say(f"process {os.getpid()}")
for line in sys.stdin:
    message = json.loads(line)
    body, count = message["body"], message["receiveCount"]
    say(f"got {body} {count}")
    answer = {"id": message["id"], "verdict": "done"}
    if count == 1 and body == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif count == 1 and body == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.pause()
    elif count == 1 and body == "nonsense":
        print("now working on it", flush=True)
        continue
    elif count == 1 and body == "long":
        print("x" * 100000, flush=True)
        continue
    elif count == 1 and body == "stranger":
        print(json.dumps({"id": "nobody", "verdict": "done"}))
    elif count == 1 and body == "verdict":
        answer["verdict"] = "fine"
    elif count == 1 and body == "later":
        answer.update(verdict="retry", delay=0, reason="not yet")
    elif body == "reject":
        answer["verdict"] = "reject"
    print(json.dumps(answer), flush=True)
say("end of input")
"""


def each_message_is_the_input_of_a_process_and_then_deleted(case):
    with case.served():
        url = case.queue("jobs")
        case.send(url, *[f"job {i}" for i in range(30)])
        command = 'echo "$(cat) $SQS_QUEUE_NAME $SQS_RECEIVE_COUNT $SQS_POISON"'
        with case.work(url, "--exec", command) as worker:
            lines = sorted(worker.output.next() for _ in range(30))
            check(lines == sorted(f"job {i} jobs 1 0\n" for i in range(30)), lines)
            log = [json.loads(line) for line in worker.finish().splitlines()]
            check([line["level"] for line in log] == ["info"] * 3, log)
            check(log[-1]["message"] == "stopped; 30 jobs were done, 0 retried", log)
        check(case.left(url) == [0, 0], case.left(url))


def a_process_that_fails_is_retried_until_the_dead_letter_queue_has_the_message(case):
    with case.served():
        url, dead = case.with_dead_letters("main", 2)
        case.send(url, "bad")
        with case.work(url, "--exec", 'echo "$SQS_QUEUE_NAME $SQS_POISON"; test $SQS_POISON = 1',
                       "--poison-queue-url", dead) as worker:
            lines = [worker.output.next() for _ in range(3)]
            check(lines == ["main 0\n", "main 0\n", "main-dead 1\n"], lines)
            log = worker.finish()
            check(log.count("ended with 1; the message is retried") == 2, log)
        check(case.left(url) == [0, 0] and case.left(dead) == [0, 0])


def the_reject_code_sends_the_message_to_another_queue(case):
    with case.served():
        url, other = case.queue("main"), case.queue("rejected")
        case.send(url, "odd")
        with case.work(url, "--exec", "echo begun; exit 3", "--reject-code", "3", "--reject-to",
                       other) as worker:
            check(worker.output.next() == "begun\n")
            worker.finish()
        check(case.left(url) == [0, 0] and case.left(other) == [1, 0])


def sigterm_finishes_what_is_in_flight(case):
    with case.served():
        url = case.queue("main")
        case.send(url, "long")
        os.mkfifo(case.directory / "go")
        with case.work(url, "--exec", "echo begun; cat go; echo ended") as worker:
            check(worker.output.next() == "begun\n")
            worker.signal(signal.SIGTERM)
            worker.log.find("stopping once the running jobs")
            (case.directory / "go").write_text("")
            worker.end()
            check(worker.output.next() == "ended\n")
        check(case.left(url) == [0, 0], case.left(url))


def a_second_sigterm_ends_the_processes_and_gives_their_messages_back(case):
    with case.served():
        url = case.queue("main")
        case.send(url, "endless")
        program = case.file("endless.py", WAITS_FOR_SIGTERM)
        with case.work(url, "--exec", f"exec python3 {program}") as worker:
            check(worker.output.next() == "begun\n")
            worker.signal(signal.SIGTERM)
            worker.log.find("stopping once the running jobs")
            worker.end(signal.SIGTERM)
            check(worker.output.next() == "told\n")
        check(case.left(url) == [1, 0], case.left(url))


def a_process_that_hangs_is_killed_after_the_timeout_and_its_message_comes_again(case):
    with case.served():
        url = case.queue("main")
        case.send(url, "hangs")
        command = 'echo "try $SQS_RECEIVE_COUNT"; test $SQS_RECEIVE_COUNT -ge 2 || sleep 1000'
        with case.work(url, "--exec", command, "--timeout", "5") as worker:
            lines = [worker.output.next() for _ in range(2)]
            check(lines == ["try 1\n", "try 2\n"], lines)
            # On a busy machine the second try may take longer than the timeout, too.
            case.wait_until_empty(url)
            log = worker.finish()
            check("took longer than --timeout 5 and was killed" in log, log)
        check(case.left(url) == [0, 0], case.left(url))


def is_running(process):
    """Whether there is such a process; one that nobody has waited for has ended."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(") ")[2][0] not in "ZX"
    return False


def a_process_that_outlives_its_shell_is_killed_before_its_message_comes_again(case):
    with case.served():
        url = case.queue("main")
        case.send(url, "hangs")
        command = f"if test -e begun; then echo again; else {OUTLIVES}; fi"
        with case.work(url, "--exec", command, "--timeout", "3") as worker:
            process = worker.output.next().split()[1]
            check(worker.output.next() == "again\n")
            check(not is_running(process), "it goes on with a message that others have")
            check("was killed" in worker.finish())


def a_process_that_outlives_its_shell_is_killed_by_a_second_sigterm(case):
    with case.served():
        url = case.queue("main")
        case.send(url, "endless")
        with case.work(url, "--exec", OUTLIVES) as worker:
            process = worker.output.next().split()[1]
            worker.signal(signal.SIGTERM)
            worker.log.find("stopping once the running jobs")
            worker.end(signal.SIGTERM)
            check(not is_running(process), "it is left behind")


def what_a_command_leaves_behind_that_ends_well_goes_on(case):
    with case.served():
        url = case.queue("main")
        case.send(url, "a")
        with case.work(url, "--exec", "sleep 1000 & echo $!", "--timeout", "60") as worker:
            process = worker.output.next().strip()
            case.wait_until_empty(url)
            worker.signal(signal.SIGTERM)
            worker.process.wait(PATIENCE)
            check(is_running(process), "it was ended")
            os.kill(int(process), signal.SIGKILL)


def what_cannot_work_is_said_clearly(case):
    with case.served() as server:
        url = case.queue("main")

        def refused(*arguments):
            return case.run("work", "--queue-url", url, *arguments)

        status, _, errors = case.run("work", "--queue-url", server.url + "/000000000000/missing",
                                     "--exec", "true")
        check(status == 1 and "QueueDoesNotExist" in errors and "/missing" in errors, errors)
        status, _, errors = refused("--exec", "true", "--reject-code", "3")
        check(status == 2 and "--reject-code needs --reject-to" in errors, errors)
        status, _, errors = refused("--exec", "true", "--lines", "cat")
        check(status == 2 and "exactly one of --exec" in errors, errors)
        case.send(url, "a")
        with case.work(url, "--exec", "no-such-command") as worker:
            worker.log.find("the command ended with 127: the shell did not find a command")
            worker.end(signal.SIGTERM)
        check(sum(case.left(url)) == 1, "the message is lost")


def one_process_answers_for_all_messages_by_lines(case):
    with case.served():
        url, other = case.queue("main"), case.queue("rejected")
        bodies = [f"job {i}" for i in range(50)] + ["later", "reject", "two\nlines", "ümlaut"]
        case.send(url, *bodies)
        program = case.file("lines.py", LINES)
        with case.work(url, "--lines", f"exec python3 {program}", "--reject-to", other) as worker:
            for _ in range(len(bodies) + 1):
                worker.log.find("got ")
            log = worker.end(signal.SIGTERM)
            check(log.count("process ") - log.count("the process ") == 1, log)
            check("not yet; the message is retried" in log and "end of input" in log, log)
        check(case.left(url) == [0, 0] and case.left(other) == [1, 0], log)


def a_process_that_dies_hangs_or_writes_nonsense_is_started_again_and_nothing_is_lost(case):
    expected = {"die": "the process was ended by signal 9 (Killed)",
                "nonsense": "not a JSON object: \\\"now working on it\\\"",
                "long": "a line of more than 65536 bytes",
                "hang": "gave no verdict within --timeout 15"}
    with case.served():
        url = case.queue("main")
        program = case.file("lines.py", LINES)
        with case.work(url, "--lines", f"exec python3 {program}", "--timeout", "15",
                       "--visibility", "30") as worker:
            for body, words in expected.items():
                case.send(url, body)
                check("1 messages that it had are retried" in worker.log.find(words))
                worker.log.find(f"got {body} 2")
            log = worker.end(signal.SIGTERM)
            check(log.count('"level":"error"') == len(expected), log)
        check(case.left(url) == [0, 0], case.left(url))


def an_answer_that_makes_no_sense_retries_its_message_only(case):
    with case.served():
        url = case.queue("main")
        case.send(url, "verdict", "stranger")
        program = case.file("lines.py", LINES)
        with case.work(url, "--lines", f"exec python3 {program}") as worker:
            worker.log.find("got verdict 2")
            log = worker.end(signal.SIGTERM)
            check('has no \\"verdict\\" that is' in log, log)
            check('answered a message that it does not have: id \\"nobody\\"' in log, log)
            check("got stranger 2" not in log and log.count("end of input") == 1, log)
        check(case.left(url) == [0, 0], case.left(url))


def answers_for_messages_that_are_not_there_do_not_fill_the_log(case):
    count = 100_000
    program = case.file("flood.py", f"""import json, sys
for line in sys.stdin:
    for number in range({count}):
        print(json.dumps({{"id": "none" + str(number), "verdict": "done"}}))
    print(json.dumps({{"id": json.loads(line)["id"], "verdict": "done"}}), flush=True)
""")
    with case.served():
        url = case.queue("main")
        case.send(url, "flood")
        with case.work(url, "--lines", f"exec python3 {program}") as worker:
            case.wait_until_empty(url)
            log = worker.finish()
        first = re.findall(r"answered a message that it does not have", log)
        more = re.findall(r"answered (\d+) more times a message that it does not have", log)
        check(first and len(first) + sum(int(number) for number in more) == count, log[:5000])
        check(len(log) < 100_000, f"{len(log)} bytes of log")


def a_second_sigterm_reaches_the_process_of_lines_and_gives_its_messages_back(case):
    with case.served():
        url = case.queue("main")
        case.send(url, "a", "b")
        program = case.file("endless.py", WAITS_FOR_SIGTERM.replace("True)", "True, file=sys.stderr)")
                            .replace("import signal", "import signal, sys"))
        with case.work(url, "--lines", f"exec python3 {program}") as worker:
            worker.log.find("begun")
            worker.signal(signal.SIGTERM)
            worker.log.find("stopping once the running jobs")
            log = worker.end(signal.SIGTERM)
            check("told" in log, log)
        check(case.left(url) == [2, 0], case.left(url))


def what_is_too_old_is_forwarded_in_place_of_being_handled(case):
    with case.served():
        url, old = case.queue("main"), case.queue("expired")
        fifo = case.queue("main.fifo", FifoQueue="true")
        case.send(url, "stale", MessageAttributes={"k": {"DataType": "String", "StringValue": "v"}})
        case.send_fifo(fifo, "g", "one", "two")
        with case.work([url, fifo], "--exec", "echo handled", "--max-age", "500", "--expired-to", old,
                       environment=case.with_clock_off_by(600)) as worker:
            for _ in range(3):
                worker.log.find("is older than --max-age 500 and goes to --expired-to")
            worker.end(signal.SIGTERM)
            check(worker.output.text() == "", worker.output.text())
        check(case.left(url) == [0, 0] and case.left(fifo) == [0, 0])
        found = case.client.call("ReceiveMessage", QueueUrl=old, MaxNumberOfMessages=10,
                                 MessageAttributeNames=["All"])["Messages"]
        check({message["Body"] for message in found} == {"stale", "one", "two"}, found)
        check([m["MessageAttributes"]["k"]["StringValue"] for m in found if m["Body"] == "stale"]
              == ["v"], found)
        case.send(url, "fresh")
        with case.work(url, "--exec", "echo handled", "--max-age", "500", "--expired-to",
                       old) as worker:
            check(worker.output.next() == "handled\n")
            worker.finish()
        status, _, errors = case.run("work", "--queue-url", url, "--exec", "true", "--max-age",
                                     "345600", "--expired-to", old)
        check(status == 1 and "keeps messages for 345600 s" in errors, errors)
        status, _, errors = case.run("work", "--queue-url", url, "--exec", "true", "--max-age", "9")
        check(status == 2 and "--max-age and --expired-to need each other" in errors, errors)


def figures_are_served_for_prometheus(case):
    with case.served():
        url = case.queue("main")
        case.send(url, "a")
        with case.work(url, "--exec", "exit 1", "--metrics", "127.0.0.1:0", "--visibility",
                       "30") as worker:
            address = json.loads(worker.log.find("metrics at"))["message"].split()[-1]
            worker.log.find("the message is retried")
            page = urllib.request.urlopen(address, timeout=PATIENCE).read().decode()
            check(f'stanchion_worker_retried_total{{queue="' in page, page)
            try:
                urllib.request.urlopen(address + "/other", timeout=PATIENCE)
                raise AssertionError("there is no other page")
            except urllib.error.HTTPError as error:
                check(error.code == 404, error)
            worker.end(signal.SIGTERM)
        status, _, errors = case.run("work", "--queue-url", url, "--exec", "true", "--metrics", "x")
        check(status == 1 and "--metrics: " in errors, errors)


def the_figures_of_a_queue_are_those_of_the_queue(case):
    with case.served():
        url = case.queue("main")
        case.send(url, *(str(number) for number in range(100)))
        release = case.directory / "release"
        os.mkfifo(release)
        with case.work(url, "--exec", f"echo begun; read line < {release}", "--concurrency", "2",
                       "--metrics", "127.0.0.1:0") as worker:
            address = json.loads(worker.log.find("metrics at"))["message"].split()[-1]
            for _ in range(2):
                check(worker.output.next() == "begun\n")
            # The figures were perhaps read before the two were received; they are read again.
            deadline = time.monotonic() + PATIENCE
            wanted = [f'stanchion_worker_queue_visible{{queue="{url}"}} 98\n',
                      f'stanchion_worker_queue_in_flight{{queue="{url}"}} 2\n',
                      f'stanchion_worker_needs_more_in_flight{{queue="{url}"}} 0\n']
            page = ""
            while not all(line in page for line in wanted):
                check(time.monotonic() < deadline, page)
                page = urllib.request.urlopen(address, timeout=PATIENCE).read().decode()
                time.sleep(0.05)
            worker.signal(signal.SIGTERM)
            worker.log.find("stopping once the running jobs")
            worker.end(signal.SIGTERM)


def a_terminal_shows_the_work_as_it_goes_on(case):
    with case.served():
        url = case.queue("orders")
        case.send(url, "a", "b")
        screen, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
        worker = subprocess.Popen(
            [case.binary, "work", "--queue-url", url, "--exec",
             'test "$(cat)" = a && sleep 1000 || { echo "printed by it"; exit 7; }', "--visibility", "30"],
            cwd=case.directory, stdin=terminal, stdout=terminal, stderr=terminal,
            env=clean_environment({"TERM": "xterm"}))
        os.close(terminal)
        seen = b""
        wanted = [b"in flight", b"orders  ", b"oldest message in flight: ", b"printed by it",
                  b"the command ended with 7; the message is retried", b"\x1b[1;2"]
        try:
            while not all(words in seen for words in wanted):
                check(select.select([screen], [], [], PATIENCE)[0], seen)
                seen += os.read(screen, 65536)
            worker.send_signal(signal.SIGTERM)
            worker.send_signal(signal.SIGINT)
            with contextlib.suppress(OSError):
                while select.select([screen], [], [], PATIENCE)[0] and (more := os.read(screen, 65536)):
                    seen += more
            check(worker.wait(PATIENCE) == 0, seen)
            # The whole terminal scrolls again.
            check(seen.rindex(b"\x1b[r") > seen.rindex(b"\x1b[1;2"), seen)
            check(b"stopped; 0 jobs were done" in seen, seen)
        finally:
            worker.kill()
            worker.wait()
            os.close(screen)


if __name__ == "__main__":
    sys.exit(run_tests(tests_of(globals()), __doc__, WorkCase))
