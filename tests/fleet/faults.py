"""What can be done to a fleet, its brokers and its logs while clients go on: the table KINDS.

Each fault is over, and all that it broke works again, when its function returns.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import threading
import time
import urllib.request

from cluster import ALL_BROKERS, BROKERS, DATA, ROOT, broker_pid, kafka
from kafka_files import batches, last_with_records, segments
from ledger import ALIVE, LOST
from sqs import Doubt, NoAnswer, NotSent, Refused

PAUSE_SECONDS = (0.3, 5.0)
WRITE_TIMEOUT = 6
# A call may wait for an owner and for Kafka, ten and six seconds; the rest is for a busy machine.
ANSWER_SECONDS_MAX = 30
PATIENCE = 120
HOUR = 3600
PROBES = 4
SENDS = 300
STRANGER_SIZE_MIN = 8  # What is shorter may be all that is left of an entry.
SHIM = ROOT / "tests" / "cli" / "wall_clock_shim.cc"
STRANGE_KEY = "stranger"
# Why a shard is given up of whose log a byte has changed.
DAMAGE = re.compile(r"the entry at offset \d+ .* (does not|is cut short|is missing|was read twice)|"
                    r"goes on at offset \d+, but nothing can be read|cannot be read further than|"
                    r"cannot be read: ")


def wait_until(what, happened, seconds=PATIENCE):
    """What `happened` gave."""
    deadline = time.monotonic() + seconds
    while not (found := happened()):
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {seconds} s: {what}")
        time.sleep(0.2)
    return found


class Meddler:
    """Writes to topics, and deletes them."""

    def __init__(self, binary):
        self.program = pathlib.Path(binary).resolve().parent / "tests" / "log_meddler"

    def run(self, *arguments, standard_input=b""):
        done = subprocess.run([self.program, arguments[0], BROKERS, *map(str, arguments[1:])],
                              input=standard_input, capture_output=True, timeout=60, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"log_meddler {arguments}: {done.stderr.decode()}")
        return done.stdout

    def append(self, record, topic, partition=0, key=""):
        self.run("append", topic, partition, *([key] if key else []), standard_input=record)

    def last(self, topic, partition):
        """The bytes of the last record; none if the log is empty."""
        return self.run("last", topic, partition)

    def range(self, topic, partition):
        """(the first offset, the one behind the last)"""
        first, end = self.run("range", topic, partition).split()
        return int(first), int(end)

    def trim(self, topic, partition):
        self.run("trim", topic, partition)

    def partitions(self, topic):
        """(leader, replicas, those in sync) of each."""
        lines = [line.split() for line in self.run("partitions", topic).decode().splitlines()]
        return [(int(leader), brokers(replicas), brokers(in_sync))
                for _, leader, replicas, in_sync in lines]

    def delete(self, *topics):
        self.run("delete", *topics)


def command_of(pid):
    """Nothing if it has ended, also while nobody has asked how."""
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def brokers(text):
    return [] if text == "-" else [int(number) for number in text.split(",")]


class WallClock:
    """What a process that is started with its environment takes for the time of day."""

    def __init__(self, directory, name):
        self.library = pathlib.Path(directory) / "wall_clock_shim.so"
        self.offset = pathlib.Path(directory) / f"{name}.offset"
        if not self.library.exists():
            subprocess.run(["g++", "-std=c++20", "-O1", "-shared", "-fPIC", "-o", self.library,
                            SHIM], check=True)
        self.offset.write_bytes(bytes(8))

    def set(self, seconds):
        with open(self.offset, "r+b") as file:
            file.write(struct.pack("<q", seconds))

    def environment(self):
        return {"LD_PRELOAD": str(self.library), "WALL_CLOCK_OFFSET": str(self.offset)}


class Probe(threading.Thread):
    """Sends one message after the other and notes when each call began and ended, and how."""

    def __init__(self, make_client, queue):
        super().__init__(daemon=True)
        self.client = make_client()
        self.queue = queue
        self.ending = threading.Event()
        self.calls = []

    def run(self):
        while not self.ending.is_set():
            began = time.monotonic()
            try:
                self.client.call("SendMessage", QueueUrl=self.queue, MessageBody="x")
                outcome = "done"
            except NoAnswer:
                outcome = "no answer"
            except (Doubt, NotSent, Refused) as error:
                outcome = str(error)
            self.calls.append((began, time.monotonic(), outcome))
            self.ending.wait(0.1)

    def end(self):
        self.ending.set()
        self.join()


class Faults:
    """Of one fleet."""

    def __init__(self, cluster, ledger, chance, log, make_client, directory, load):
        self.cluster = cluster
        self.load = load
        self.ledger = ledger
        self.chance = chance
        self.log = log
        self.make_client = lambda: make_client(cluster.find)
        self.directory = directory
        self.meddler = Meddler(cluster.binary)

    def play(self, kind):
        KINDS[kind](self)

    def hold_clients(self, backup_of):
        """Then has every node save what it has: nothing is in the log alone. Twice, since an owner
        that saves adds a record, which others have only when they save again."""
        before = self.ledger.stats["sends"]
        wait_until("more sends", lambda: self.ledger.stats["sends"] > before + SENDS)
        self.load.hold()
        self.cluster.wait_until_whole(PATIENCE)
        for node in self.cluster.nodes * 2:
            to = backup_of(node)
            shutil.rmtree(to, ignore_errors=True)
            done = subprocess.run([node.binary, "backup", "--data", node.data, "--to", str(to)],
                                  capture_output=True, text=True, timeout=PATIENCE, check=False)
            if done.returncode != 0:
                raise RuntimeError(f"backup of {node.name}: {done.stdout} {done.stderr}")

    def some_node(self):
        return self.chance.choice(self.cluster.nodes)

    # Nodes.

    def kill_node(self):
        node = self.some_node()
        self.log(f"SIGKILL {node.name}")
        node.kill()
        time.sleep(self.chance.uniform(0, 3))
        self.start_again(node)

    def start_again(self, *nodes):
        for node in nodes:
            node.spawn()
        for node in nodes:
            node.wait_until_ready()

    def pause_node(self):
        node = self.some_node()
        seconds = self.chance.uniform(*PAUSE_SECONDS)
        self.log(f"SIGSTOP {node.name} for {seconds:.1f} s")
        node.pause()
        time.sleep(seconds)
        node.go_on()

    def stop_node(self):
        node = self.some_node()
        self.log(f"SIGTERM {node.name}")
        status = node.terminate()
        if status != 0:
            raise RuntimeError(f"{node.name} ended with {status}: {node.log_tail()}")
        self.start_again(node)

    def lose_disk(self):
        node = self.some_node()
        self.log(f"{node.name} loses its disk")
        node.kill()
        node.lose_disk()
        self.start_again(node)

    def kill_all_nodes(self):
        self.log("SIGKILL to all nodes")
        for node in self.cluster.nodes:
            node.kill()
        self.start_again(*self.cluster.nodes)

    def set_node_clock(self):
        """It owns nothing until it is started with a clock that is right: a process that runs makes
        an hour up in ten hours or more (ADR 0017)."""
        node = self.some_node()
        ahead = self.chance.choice([-HOUR, HOUR])
        self.log(f"the clock of {node.name} is {ahead} s off")
        clock = WallClock(self.directory, node.name)
        clock.set(ahead)
        node.kill()
        node.environment = clock.environment()
        node.spawn()
        wait_until(f"{node.name} is known to be off and owns nothing",
                   lambda: self.is_off_and_owns_nothing(node))
        time.sleep(self.chance.uniform(0, 3))
        clock.set(0)
        node.kill()
        node.environment = {}
        self.start_again(node)
        wait_until(f"the clock of {node.name} is right again", lambda: all(
            abs(ahead) < HOUR / 2 for ahead in self.clocks().values()))

    def is_off_and_owns_nothing(self, node):
        report = next((one for one in self.status()["nodes"] if one["node"] == node.name), {})
        return (abs(report.get("clock_offset_millis", 0)) > 1000 * HOUR / 2
                and report.get("owned") == 0)

    def clocks(self):
        """By living node: how many seconds it is ahead."""
        return {report["node"]: report["clock_offset_millis"] / 1000
                for report in self.status()["nodes"] if "clock_offset_millis" in report}

    def status(self):
        """What `fleet status` says; nothing while it cannot tell."""
        said = self.cluster.fleet("status", "--json", check=False).stdout
        return json.loads(said) if said else {"nodes": [], "shards": [], "warnings": []}

    # Brokers.

    def kill_broker(self):
        broker = self.chance.choice(ALL_BROKERS)
        self.log(f"SIGKILL broker {broker}")
        self.kill_and_start(broker)

    def kill_controller(self):
        broker = int(kafka("controller"))
        self.log(f"SIGKILL broker {broker}, the active controller")
        self.kill_and_start(broker)

    def kill_and_start(self, broker):
        kafka("kill", str(broker))
        time.sleep(self.chance.uniform(0, 4))
        kafka("start", str(broker))
        self.wait_for_brokers()

    def pause_broker(self):
        broker = self.chance.choice(ALL_BROKERS)
        seconds = self.chance.uniform(1, 5)
        self.log(f"SIGSTOP broker {broker} for {seconds:.1f} s")
        os.kill(broker_pid(broker), signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(broker_pid(broker), signal.SIGCONT)
        self.wait_for_brokers()

    def kill_node_and_broker(self):
        node, broker = self.some_node(), self.chance.choice(ALL_BROKERS)
        self.log(f"SIGKILL {node.name} and broker {broker} together")
        node.kill()
        kafka("kill", str(broker))
        time.sleep(self.chance.uniform(0, 4))
        kafka("start", str(broker))
        self.start_again(node)
        self.wait_for_brokers()

    def lose_two_brokers(self):
        """Kafka takes no writes. A call must be told so in time, and none may succeed."""
        two = self.chance.sample(ALL_BROKERS, 2)
        seconds = WRITE_TIMEOUT + self.chance.uniform(4, 8)
        kill = self.chance.random() < 0.5
        self.log(f"{'SIGKILL' if kill else 'SIGSTOP'} brokers {two} for {seconds:.1f} s")
        queues = [f"probe-{i}" for i in range(PROBES)]
        client = self.make_client()
        for queue in queues:
            client.insist("CreateQueue", QueueName=queue)
        pids = [broker_pid(broker) for broker in two]
        for broker, pid in zip(two, pids):
            kafka("kill", str(broker)) if kill else os.kill(pid, signal.SIGSTOP)
        gone = time.monotonic()
        probes = [Probe(self.make_client, queue) for queue in queues]
        for probe in probes:
            probe.start()
        time.sleep(seconds)
        if in_touch := [node.name for node in self.cluster.nodes
                        if figure(node, "stanchion_fleet_in_touch", missing=0) != 0]:
            self.ledger.violated(ALIVE, f"{in_touch} say that they are in touch, without Kafka")
        back = time.monotonic()
        for broker, pid in zip(two, pids):
            kafka("start", str(broker)) if kill else os.kill(pid, signal.SIGCONT)
        self.wait_for_brokers()
        for probe in probes:
            probe.end()
        self.audit_probes([call for probe in probes for call in probe.calls], gone, back)

    def audit_probes(self, calls, gone, back):
        # All began when the brokers were gone. The first are told so after WRITE_TIMEOUT, the next
        # ones perhaps only when the brokers are back.
        meanwhile = [call for call in calls if call[1] < back]
        if not any(outcome.startswith(("500", "503")) for _, _, outcome in meanwhile):
            self.ledger.violated(ALIVE, f"no call was told that Kafka takes no writes: {calls}")
        if any(outcome == "done" for began, _, outcome in meanwhile if began > gone + 1):
            self.ledger.violated(LOST, "a send was acknowledged by one broker of three")
        slowest = max(ended - began for began, ended, _ in calls)
        self.log(f"the slowest answer of {len(calls)}: {slowest:.1f} s")
        if slowest > ANSWER_SECONDS_MAX:
            self.ledger.violated(ALIVE, f"a call waited {slowest:.1f} s for its answer")

    def set_broker_clock(self):
        """And has it lead what the broker led that is killed afterwards."""
        broker, other = self.chance.sample(ALL_BROKERS, 2)
        ahead = self.chance.choice([-HOUR, HOUR])
        self.log(f"the clock of broker {broker} is {ahead} s off, then SIGKILL broker {other}")
        clock = WallClock(self.directory, f"broker-{broker}")
        clock.set(ahead)
        kafka("kill", str(broker))
        kafka("start", str(broker), environment=clock.environment())
        self.wait_for_brokers()
        self.kill_and_start(other)
        self.log(f"the clock of broker {broker} is right again")
        self.kill_and_start(broker)

    def wait_for_brokers(self):
        """Until all copies are in sync: the next fault must not take the second of three."""
        self.wait_for_copies()
        self.make_client().insist("GetQueueUrl", QueueName="plain")

    def wait_for_copies(self):
        topics = [f"{self.cluster.name}.{which}" for which in ("log", "control")]
        wait_until("all copies of the logs in sync", lambda: all(
            len(in_sync) == len(ALL_BROKERS) for topic in topics
            for _, _, in_sync in self.partitions(topic)))

    def partitions(self, topic):
        try:
            return self.meddler.partitions(topic) or [(0, [], [])]
        except RuntimeError:
            return [(0, [], [])]

    def flip_byte(self):
        """On the disk of the broker that leads next, where a node that begins then has to read.

        The first replica leads whenever the leader goes and it is in sync. The other nodes stand still:
        nobody adds records, so that the last entry with records is not trimmed."""
        self.hold_clients(lambda node: pathlib.Path(self.directory) / f"saved-{node.name}")
        try:
            self.flip_byte_of_quiet_log()
        finally:
            self.load.go_on()

    def flip_byte_of_quiet_log(self):
        node = self.some_node()
        others = [other for other in self.cluster.nodes if other is not node]
        node.kill()
        for other in others:
            other.pause()
        try:
            partition, broker = self.flip_byte_for(node)
        finally:
            for other in others:
                other.go_on()
        kafka("kill", str(broker))
        shutil.rmtree(DATA / str(broker) / partition)
        kafka("start", str(broker))
        self.wait_for_brokers()
        self.cluster.wait_until_whole(PATIENCE)

    def flip_byte_for(self, node):
        topic = f"{self.cluster.name}.log"
        copies = self.meddler.partitions(topic)
        shard = self.chance.choice([shard for shard in range(len(copies))
                                    if last_with_records(DATA, f"{topic}-{shard}") >= 0])
        broker = copies[shard][1][0]
        partition = f"{topic}-{shard}"
        self.stop_in_order(broker)
        path = segments(DATA / str(broker), partition)[-1]
        batch = [batch for batch in batches(path) if batch.has_records][-1]
        sizes = batch.changes_of_sizes(path.read_bytes())
        in_entry = self.chance.random() < 0.3
        where, mask = (self.chance.choice(batch.entry), 1) if in_entry else self.chance.choice(sizes)
        self.log(f"byte {where} of {partition}, {where - batch.entry.start} of the entry at offset "
                 f"{batch.offset}, changes by {mask} on the disk of broker {broker}; {node.name} reads")
        flip(path, where, mask)
        kafka("start", str(broker))
        self.wait_for_copies()
        if (leader := self.meddler.partitions(topic)[shard][0]) != broker:
            kafka("kill", str(leader))
            kafka("start", str(leader))
            self.wait_for_copies()
        node.spawn()
        given_up = wait_until(f"{node.name} stops at the place", lambda: [
            given for given in ready_of(node).get("shardsGivenUp", []) if given["shard"] == shard])
        self.log(f"{node.name} has given shard {shard} up: {given_up[0]}")
        if not DAMAGE.search(str(given_up[0])):
            self.ledger.violated(ALIVE, f"the shard is not given up for the damage: {given_up[0]}")
        if others := [given for given in ready_of(node)["shardsGivenUp"] if given not in given_up]:
            self.ledger.violated(ALIVE, f"other shards are given up, too: {others}")
        return partition, broker

    def stop_in_order(self, broker):
        """Kafka verifies what it has if it was killed, and gets what is damaged from the others."""
        pid = broker_pid(broker)
        os.kill(pid, signal.SIGTERM)
        wait_until(f"broker {broker} ends", lambda: not command_of(pid))

    # The operator.

    def operate(self):
        node, other = self.chance.sample(self.cluster.nodes, 2)
        shard = self.chance.randrange(self.cluster.shards)
        self.log(f"the operator drains {node.name}, moves shard {shard} to {other.name}, undoes it")
        self.cluster.fleet("drain", node.name)
        wait_until(f"{node.name} serves nothing",
                   lambda: figure(node, "stanchion_fleet_shards_served", missing=1) == 0)
        self.cluster.fleet("move", str(shard), other.name)
        self.cluster.fleet("drain", node.name, "--undo")
        self.cluster.fleet("move", str(self.chance.randrange(self.cluster.shards)), node.name)

    # Strangers who write into the topics.

    def append_garbage(self):
        """Nodes ignore it: long enough and of another beginning, or an entry once more."""
        self.log("strangers write into the logs")
        topic = f"{self.cluster.name}.log"
        for partition in range(self.cluster.shards):
            for record in self.garbage(b"STOP"):
                if len(record) < STRANGER_SIZE_MIN:
                    continue
                self.meddler.append(record, topic, partition)
            if entry := self.meddler.last(topic, partition):
                self.meddler.append(entry, topic, partition)

    def append_garbage_to_control(self):
        self.log("strangers write into the control log")
        topic = f"{self.cluster.name}.control"
        known = self.meddler.last(topic, 0)
        for record in [*self.garbage(b"STNC"), known[:-1], known + b"\0", known]:
            self.meddler.append(record, topic, key=STRANGE_KEY)

    def garbage(self, magic):
        return [b"x", magic, magic + b"garbage", magic + b"\x01\x01" + self.chance.randbytes(20),
                magic + b"\xff" * 50, self.chance.randbytes(64), self.chance.randbytes(100_000),
                b"{}" * 200]

    def damage_entry(self):
        """An entry that nobody can read stops a shard, and no other, until it is skipped."""
        topic = f"{self.cluster.name}.log"
        shard, entry = wait_until("a log that ends with an entry", lambda: self.some_entry(topic))
        self.log(f"a damaged entry in the log of shard {shard}")
        self.meddler.append(entry[:-1] + bytes([entry[-1] ^ 1]), topic, shard)
        complaint = wait_until("nodes stop at the entry", lambda: re.search(
            rf"has given up shard {shard}: .*offset (\d+) .*does not match its checksum",
            "\n".join(self.status()["warnings"])))
        self.audit_stopped(shard)
        offset = complaint[1]
        found = subprocess.run(
            [self.cluster.binary, "inspect", "--shard", str(shard), "--kafka", BROKERS, "--name",
             self.cluster.name], capture_output=True, text=True, timeout=PATIENCE, check=False)
        if found.returncode != 1 or not re.search(rf"\b{offset}\b.*DAMAGED", found.stdout):
            self.ledger.violated(ALIVE, f"inspect does not show the damage: {found.stdout[-500:]}")
        self.cluster.fleet("skip", str(shard), offset)
        self.cluster.wait_until_whole(PATIENCE)

    def some_entry(self, topic):
        """(shard, bytes) of the last one of a log; what strangers have appended is none."""
        for shard in self.chance.sample(range(self.cluster.shards), self.cluster.shards):
            if (entry := self.meddler.last(topic, shard)).startswith(b"STNE"):
                return shard, entry
        return None

    def ask_all_shards(self):
        """Nothing. A list needs a proof of each owner; one that has nothing to do does not hear what
        has become of its log, and one of six shards has no queue."""
        client = self.make_client()
        try:
            client.call("ListQueues")
        except (Doubt, NotSent, Refused):
            pass
        client.close()

    def audit_stopped(self, shard):
        """Whoever watches a node is told which shard nobody serves."""
        node = self.some_node()
        wait_until("the node says that it has given the shard up", lambda: any(
            given["shard"] == shard for given in ready_of(node).get("shardsGivenUp", [])))
        wait_until("the node says that nobody serves the shard",
                   lambda: shard in ready_of(node).get("shardsWithoutOwner", [])
                   or self.ask_all_shards())
        # On a busy machine a node may be taken for dead for a moment, and its shards count then.
        for name in ("given_up", "without_owner"):
            wait_until(f"stanchion_fleet_shards_{name} is 1",
                       lambda name=name: figure(node, f"stanchion_fleet_shards_{name}") == 1)


def flip(path, at, mask=1):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ mask]))


def ready_of(node):
    """What the node says of its readiness, whatever the status; nothing if it does not answer."""
    opener = urllib.request.build_opener(AnyStatus)
    try:
        with opener.open(f"http://{node.host}:{node.port}/health/ready", timeout=5) as page:
            return json.load(page)
    except (OSError, ValueError):
        return {}


class AnyStatus(urllib.request.HTTPErrorProcessor):
    def http_response(self, request, response):
        return response


def figure(node, name, missing=0):
    """`missing` while the node does not answer."""
    try:
        found = re.search(rf"^{name} (\S+)$", node.metrics(), re.MULTILINE)
    except OSError:
        return missing
    return float(found[1]) if found else missing


KINDS = {
    "kill-node": Faults.kill_node,
    "pause-node": Faults.pause_node,
    "stop-node": Faults.stop_node,
    "lose-disk": Faults.lose_disk,
    "kill-all-nodes": Faults.kill_all_nodes,
    "node-clock": Faults.set_node_clock,
    "kill-broker": Faults.kill_broker,
    "pause-broker": Faults.pause_broker,
    "kill-controller": Faults.kill_controller,
    "kill-node-and-broker": Faults.kill_node_and_broker,
    "no-quorum": Faults.lose_two_brokers,
    "broker-clock": Faults.set_broker_clock,
    "flipped-byte": Faults.flip_byte,
    "operator": Faults.operate,
    "garbage": Faults.append_garbage,
    "garbage-control": Faults.append_garbage_to_control,
    "damaged-entry": Faults.damage_entry,
}


def in_random_order(chance, kinds):
    """Every kind once, then once more in another order, and so on."""
    while True:
        yield from chance.sample(list(kinds), len(kinds))
