#!/usr/bin/env python3
"""Uses scripts/fleet-up as a person does who tries a fleet: starts, breaks, stops and wipes it.

    fleet_up_test.py

It has ports and directories of its own, so that a fleet which somebody tries here is left alone.
Where Kafka cannot be had, the test is skipped, and counted as skipped.
"""
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

from cluster import CANNOT_FETCH, KAFKA, KAFKA_PORT, ROOT, CannotHaveKafka, insist, kafka

from sqs import Client, Doubt, NotSent, Refused  # noqa: E402

FLEET_UP = ROOT / "scripts" / "fleet-up"
OWN_KAFKA_PORT = KAFKA_PORT + 10
OWN_PORT = KAFKA_PORT + 20
# With nodes that wait in vain for others to take their shards it would be more than 15.
NODES_STOP_SECONDS_MAX = 15
PATIENCE = 60


class Trial:
    """A fleet in `directory`, with the jars that all tests share."""

    def __init__(self, directory):
        self.home = pathlib.Path(directory) / "fleet"
        self.kafka_home = pathlib.Path(directory) / "kafka"
        self.kafka_home.mkdir()
        shared = pathlib.Path(os.environ.get("STANCHION_KAFKA_DIR", ROOT / "build" / "kafka"))
        for jars in shared.glob("jars-*.*"):
            (self.kafka_home / jars.name).symlink_to(jars.resolve())
        self.environment = {**os.environ, "STANCHION_FLEET_UP_DIR": str(self.home),
                            "STANCHION_FLEET_UP_PORT": str(OWN_PORT),
                            "STANCHION_KAFKA_DIR": str(self.kafka_home),
                            "STANCHION_KAFKA_PORT": str(OWN_KAFKA_PORT)}

    def run(self, *arguments, script=FLEET_UP):
        done = subprocess.run([str(script), *arguments], env=self.environment, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=180,
                              check=False)
        assert done.returncode != CANNOT_FETCH, done.stderr
        return done.returncode, done.stdout, done.stderr

    def start(self):
        """Starts what is missing; (pids of the nodes by number, all that was said)."""
        status, said, error = self.run()
        assert status == 0, said + error
        rows = re.findall(r"^node-(\d), zone (\w): (\S+)  \(pid (\d+)\)$", said, re.MULTILINE)
        assert [(row[0], row[1]) for row in rows] == [("1", "a"), ("2", "b"), ("3", "c")], said
        for row in rows:
            assert row[2] == f"http://127.0.0.1:{OWN_PORT + int(row[0])}", said
        return {int(row[0]): int(row[3]) for row in rows}, said

    def processes(self):
        """Everything that runs for this fleet, nodes and brokers."""
        mark = str(self.home.parent).encode()
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if mark in path.read_bytes():
                    found.append(int(path.parent.name))
            except OSError:
                pass  # It has just ended.
        return found

    def call(self, node, action, **parameters):
        """A call that may be made again, at a node of a fleet in which something was just broken."""
        client = Client(lambda: ("127.0.0.1", OWN_PORT + node))
        try:
            return insist(client, action, **parameters)
        finally:
            client.close()

    def take(self, node, body):
        """Receives until this message comes, and deletes it. A call that was made again may have sent
        another one twice, or have received this one before, which then comes after its timeout."""
        deadline = time.monotonic() + PATIENCE
        while True:
            taken = self.call(node, "ReceiveMessage", QueueUrl="trial", WaitTimeSeconds=5)
            for message in taken.get("Messages", []):
                self.call(node, "DeleteMessage", QueueUrl="trial",
                          ReceiptHandle=message["ReceiptHandle"])
                if message["Body"] == body:
                    return
            assert time.monotonic() < deadline, f'node {node} does not have "{body}"'


def wait_until(what, condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def a_port_that_is_taken_is_named(trial):
    for port, script, arguments, variable in (
            (OWN_PORT + 2, FLEET_UP, (), "STANCHION_FLEET_UP_PORT"),
            (OWN_PORT + 10003, FLEET_UP, (), "STANCHION_FLEET_UP_PORT"),
            (OWN_KAFKA_PORT + 102, KAFKA, ("start",), "STANCHION_KAFKA_PORT")):
        with socket.create_server(("127.0.0.1", port)):
            status, _, error = trial.run(*arguments, script=script)
        assert status == 1 and f"port {port} is in use" in error and variable in error, error
        assert not trial.processes() and not trial.home.exists()


def nothing_runs_before_the_start(trial):
    status, _, error = trial.run("status")
    assert status == 1 and "scripts/fleet-up starts it" in error, error


def heed_interrupts():
    """Whoever was started in the background of a shell ignores them, and so do its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def an_interrupted_start_says_what_to_do(trial):
    """Ctrl-C goes to all processes of the terminal, which are those of a session here."""
    begun = subprocess.Popen([str(FLEET_UP)], env=trial.environment, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             start_new_session=True, preexec_fn=heed_interrupts)
    wait_until("no broker was started", (trial.kafka_home / "data" / "1.pid").exists)
    os.killpg(begun.pid, signal.SIGINT)
    said, _ = begun.communicate(timeout=PATIENCE)
    assert begun.returncode == 130, said
    assert "scripts/fleet-up stop" in said and "Traceback" not in said, said


def any_node_takes_any_call(trial):
    trial.pids, said = trial.start()
    trial.said = said
    trial.call(1, "CreateQueue", QueueName="trial")
    trial.call(1, "SendMessage", QueueUrl="trial", MessageBody="at once")
    trial.take(3, "at once")
    trial.call(1, "SendMessage", QueueUrl="trial", MessageBody="later")


def a_node_that_is_killed_as_it_says_is_started_again(trial):
    victim = int(re.search(r"kill -9 (\d+)", trial.said)[1])
    assert victim == trial.pids[2], trial.said
    os.kill(victim, signal.SIGKILL)
    wait_until("a killed process goes on", lambda: victim not in trial.processes())
    again, _ = trial.start()
    assert again[2] != victim and (again[1], again[3]) == (trial.pids[1], trial.pids[3]), again
    # The node gets some of its shards back, and while one is handed over nobody serves it.
    wait_until("a shard has no owner", lambda: trial.run("status")[0] == 0)
    assert "3 nodes" in trial.run("status")[1]


def time_to_stop(trial):
    """Starts what is missing and stops it all; how long the nodes took to end."""
    nodes, _ = trial.start()
    began = time.monotonic()
    stopping = subprocess.Popen([str(FLEET_UP), "stop"], env=trial.environment)
    wait_until("nodes do not stop", lambda: not set(nodes.values()) & set(trial.processes()))
    took = time.monotonic() - began
    assert stopping.wait(timeout=180) == 0
    assert not trial.processes()
    return took


def a_stop_ends_all_and_keeps_what_is_there(trial):
    took = time_to_stop(trial)
    if took >= NODES_STOP_SECONDS_MAX:
        # The machine may have been busy; nodes that wait in vain do so every time.
        took = time_to_stop(trial)
    assert took < NODES_STOP_SECONDS_MAX, f"stopping all nodes took {took:.0f} s twice"
    trial.start()
    trial.take(2, "later")


def a_wipe_leaves_nothing(trial):
    status, said, error = trial.run("wipe")
    assert status == 0, said + error
    assert not trial.processes()
    assert not trial.home.exists()
    assert not (trial.kafka_home / "data").exists()


TESTS = (a_port_that_is_taken_is_named, nothing_runs_before_the_start,
         an_interrupted_start_says_what_to_do, any_node_takes_any_call,
         a_node_that_is_killed_as_it_says_is_started_again,
         a_stop_ends_all_and_keeps_what_is_there, a_wipe_leaves_nothing)


def run(trial):
    """Each test goes on with what the one before has left, so the first failure ends the run."""
    for count, test in enumerate(TESTS):
        try:
            test(trial)
        except (AssertionError, OSError, RuntimeError, NotSent, Doubt, Refused,
                subprocess.TimeoutExpired) as problem:
            print(f"{test.__name__}: {type(problem).__name__}: {problem}")
            print(f"{count} passed, 1 failed")
            return 1
    print(f"{len(TESTS)} passed, 0 failed")
    return 0


def main():
    try:
        kafka("fetch")
    except CannotHaveKafka as error:
        print(f"skipped, because Kafka cannot be had: {error}")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    with tempfile.TemporaryDirectory(prefix="stanchion-fleet-up-") as directory:
        trial = Trial(directory)
        try:
            return run(trial)
        finally:
            for pid in trial.processes():
                os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
