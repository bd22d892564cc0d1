"""Three Kafka brokers and three nodes of a fleet as child processes, each of which can be broken."""

import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))

from server import kill_all, running  # noqa: E402: the path to it comes first
from sqs import Doubt, NotSent, Refused  # noqa: E402

KAFKA = ROOT / "scripts" / "fleet-kafka"
KAFKA_HOME = pathlib.Path(os.environ.get("STANCHION_KAFKA_DIR", ROOT / "build" / "kafka"))
DATA = KAFKA_HOME / "data"  # A directory for each broker, by its number.
CANNOT_FETCH = 3
KAFKA_PORT = int(os.environ.get("STANCHION_KAFKA_PORT", "19090"))
ALL_BROKERS = (1, 2, 3)
BROKERS = ",".join(f"127.0.0.1:{KAFKA_PORT + broker}" for broker in ALL_BROKERS)
START_SECONDS_MAX = 60
# The kernel gives connections those from 32768 on, so that none of them takes a node's port while
# the node is down; scripts/fleet-kafka and scripts/fleet-up have theirs outside of this.
PORTS = range(20_000, 29_000)
ZONES = "abc"


class CannotHaveKafka(Exception):
    pass


def kafka(*arguments, environment=None):
    done = subprocess.run([str(KAFKA), *arguments], capture_output=True, text=True, check=False,
                          env={**os.environ, **(environment or {})})
    if done.returncode == CANNOT_FETCH:
        raise CannotHaveKafka(done.stderr.strip())
    if done.returncode != 0:
        raise RuntimeError(f"fleet-kafka {arguments}: {done.stdout} {done.stderr}")
    return done.stdout


def on_kafka(test):
    """Runs the test, which gives an exit status, while three brokers run. Counts it as skipped where
    Kafka cannot be had: no Java, no Maven, no way to its repository."""
    try:
        kafka("start")
        return test()
    except CannotHaveKafka as error:
        print(f"skipped, because Kafka cannot be had: {error}")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    finally:
        kill_all()
        kafka("wipe")


def insist(client, action, **parameters):
    """In a fleet an owner may be away for a moment; these calls may be repeated."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while True:
        try:
            return client.call(action, **parameters)
        except (NotSent, Doubt, Refused):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def broker_pid(broker):
    return int((DATA / f"{broker}.pid").read_text())


def free_ports(count):
    """Different ones: all are bound at the same time."""
    ports = []
    chance = random.SystemRandom()
    with contextlib.ExitStack() as probes:
        while len(ports) < count:
            port = chance.choice(PORTS)
            try:
                probes.enter_context(socket.socket()).bind(("127.0.0.1", port))
                ports.append(port)
            except OSError:
                pass  # It is taken.
    return ports


class Place:
    """Where a node runs: an address, and a command that runs others there."""

    def __init__(self, host, command, ports):
        self.host = host
        self.command = list(command)
        self.ports = ports  # For clients and for other nodes.


def free_places(count):
    """On this machine."""
    ports = free_ports(2 * count)
    return [Place("127.0.0.1", [], pair) for pair in zip(ports[::2], ports[1::2])]


class Node:
    """One node's data directory, and its process while one runs."""

    def __init__(self, binary, directory, fleet, index, options, place, brokers):
        self.binary = binary
        self.place = place
        self.host = place.host
        self.name = f"node-{index + 1}"
        self.data = str(pathlib.Path(directory) / self.name)
        self.log_path = f"{self.data}.log"
        self.port, self.internal = place.ports
        self.arguments = [
            "serve", "--data", self.data, "--listen", f"{self.host}:{self.port}",
            "--fleet", fleet, "--kafka", brokers, "--node", self.name, "--zone", ZONES[index % 3],
            "--internal", f"{self.host}:{self.internal}", *options,
        ]
        self.environment = {}
        self.process = None
        self.stopped = False
        self.died = []

    def spawn(self):
        assert self.process is None
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [*self.place.command, self.binary, *self.arguments], stdout=log, stderr=log,
                stdin=subprocess.DEVNULL, env={**os.environ, **self.environment},
            )
        running.add(self.process)

    def is_ready(self):
        try:
            connection = socket.create_connection((self.host, self.port), timeout=1)
        except OSError:
            return False
        with connection:
            connection.settimeout(2)
            try:
                connection.sendall(b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n")
                return b" 200 " in connection.recv(4096).split(b"\r\n")[0]
            except OSError:
                return False

    def metrics(self):
        with urllib.request.urlopen(f"http://{self.host}:{self.port}/metrics", timeout=10) as page:
            return page.read().decode()

    def wait_until_ready(self, seconds=START_SECONDS_MAX):
        deadline = time.monotonic() + seconds
        while not self.is_ready():
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} does not become ready:\n{self.log_tail()}")
            time.sleep(0.05)

    def kill(self):
        if self.process is None:
            return
        if self.process.poll() is not None:
            self.died.append(f"{self.name}, status {self.process.returncode}: {self.log_tail()}")
        self.process.kill()
        self._gone()

    def terminate(self, seconds=120):
        """SIGTERM; the exit status, None if it did not end in time."""
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
            self.process.kill()
        self._gone()
        return status

    def pause(self):
        self.stopped = True
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)
        self.stopped = False

    def lose_disk(self):
        assert self.process is None
        shutil.rmtree(self.data, ignore_errors=True)

    def _gone(self):
        self.process.wait()
        running.discard(self.process)
        self.process = None
        self.stopped = False

    def log_text(self):
        return pathlib.Path(self.log_path).read_text(errors="replace")

    def log_tail(self):
        return self.log_text()[-3000:].strip()


class Cluster:
    """The fleet as clients see it: any node will do. `find` keeps a thread at a node for a while."""

    def __init__(self, binary, directory, name, shards=6, nodes=3, options=(), places=None,
                 brokers=BROKERS):
        self.binary = binary
        self.name = name
        self.shards = shards
        self.brokers = brokers
        self.options = list(options)
        self.nodes = [Node(binary, directory, name, i, options, place, brokers)
                      for i, place in enumerate(places or free_places(nodes))]
        self.local = threading.local()

    def fleet(self, *arguments, check=True):
        """Runs `stanchion fleet …`; its output."""
        command = [self.binary, "fleet", arguments[0], "--kafka", self.brokers,
                   "--name", self.name, *arguments[1:]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f"{command}: {done.stdout} {done.stderr}")
        return done.stdout if check else done

    def found(self):
        """Makes what is missing. Brokers that have just begun may refuse it for a moment."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while (done := self.fleet("init", "--shards", str(self.shards), check=False)).returncode:
            if time.monotonic() > deadline:
                raise RuntimeError(f"fleet init: {done.stdout} {done.stderr}")
            time.sleep(0.5)

    def start(self):
        self.found()
        for node in self.nodes:
            node.spawn()
        for node in self.nodes:
            node.wait_until_ready()

    def stop(self):
        for node in self.nodes:
            node.kill()

    def find(self, timeout=START_SECONDS_MAX):
        """The address of a node that runs. A client that was at one stays there mostly."""
        deadline = time.monotonic() + timeout
        while True:
            last = getattr(self.local, "node", None)
            if last is None or last.process is None or random.random() < 0.02:
                last = random.choice(self.nodes)
            if last.process is not None and not last.stopped:
                self.local.node = last
                return (last.host, last.port)
            self.local.node = None
            if time.monotonic() > deadline:
                return None
            time.sleep(0.01)

    def wait_until_whole(self, seconds=START_SECONDS_MAX):
        """Until all nodes are ready, and every shard has an owner and two standbys that follow it."""
        deadline = time.monotonic() + seconds
        for node in self.nodes:
            node.wait_until_ready(seconds)
        while wrong := self.what_is_missing():
            if time.monotonic() > deadline:
                raise RuntimeError(f"the fleet does not become whole: {wrong}")
            time.sleep(0.3)

    def what_is_missing(self):
        done = self.fleet("status", "--json", check=False)
        if not done.stdout:
            return done.stderr
        report = json.loads(done.stdout)
        followed = [shard for shard in report["shards"]
                    if shard["served"] and len(shard["standbys"]) == 2
                    and all("lag" in standby for standby in shard["standbys"])]
        if len(followed) == self.shards and all(node["ready"] for node in report["nodes"]):
            return None
        return report["warnings"] or report["shards"]

    def died(self):
        return [death for node in self.nodes for death in node.died]

    def warnings(self):
        found = []
        for node in self.nodes:
            found += re.findall(r".*(?:error|panic|CHECK).*", node.log_text())
        return found
