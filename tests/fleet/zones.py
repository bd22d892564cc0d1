"""Three zones on this machine: network namespaces that a bridge joins, and that can be cut off.

    this process, 10.77.0.254 ── bridge ─┬─ zone-1, 10.77.0.1: a broker, a node, clients
                                         ├─ zone-2, 10.77.0.2
                                         └─ zone-3, 10.77.0.3

isolate() first puts this process into namespaces of its own, those of networks, mounts and process
ids. So no name or address meets another's, and when this process ends, even by SIGKILL, the kernel
ends all that it has started and removes the zones.

What is sent into a zone that is cut off vanishes, as in a network that is broken: no connection is
reset, and nobody is told.
"""

import contextlib
import ctypes
import os
import pathlib
import subprocess
import sys
import threading

from cluster import KAFKA_PORT, CannotHaveKafka, Place, kafka, kill_all

BRIDGE = "zones"
NAMES = "/run/netns"
NETWORK = "10.77.0"
OURS = f"{NETWORK}.254/24"
PORTS = (9324, 9325)  # Of a node, for clients and for other nodes.
ISOLATED = "STANCHION_TEST_IS_ISOLATED"
UNSHARE = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
NOBODY = "02:00:00:00:00:99"  # A hardware address that no interface has.

libc = ctypes.CDLL(None, use_errno=True)


class CannotMakeZones(Exception):
    pass


def run(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CannotMakeZones(str(error)) from error
    if done.returncode != 0:
        raise CannotMakeZones(f"{' '.join(command)}: {done.stderr.strip()}")


def isolate():
    """Starts this program again in namespaces of its own. There is no network in them."""
    if ISOLATED in os.environ:
        return run("ip", "link", "set", "lo", "up")
    if os.geteuid() != 0:
        raise CannotMakeZones("only root can make network namespaces")
    run(*UNSHARE, "ip", "link", "add", BRIDGE, "type", "bridge")
    os.environ[ISOLATED] = "1"
    os.execvp(UNSHARE[0], [*UNSHARE, sys.executable, *sys.argv])


@contextlib.contextmanager
def three_zones():
    """Three zones with a Kafka broker in each. Raises if this machine cannot have them."""
    kafka("fetch")  # While there is a network.
    isolate()
    zones = [Zone(number) for number in (1, 2, 3)]
    make(zones)
    os.environ["STANCHION_KAFKA_ZONES"] = ",".join(f"{zone.name}={zone.host}" for zone in zones)
    try:
        kafka("wipe")  # Of a run that was killed.
        kafka("start")
        yield zones
    finally:
        kill_all()
        kafka("wipe")
        del os.environ["STANCHION_KAFKA_ZONES"]


def make(zones):
    pathlib.Path(NAMES).mkdir(exist_ok=True)
    run("mount", "-t", "tmpfs", "none", NAMES)
    run("ip", "link", "add", BRIDGE, "type", "bridge")
    run("ip", "address", "add", OURS, "dev", BRIDGE)
    run("ip", "link", "set", BRIDGE, "up")
    for zone in zones:
        zone.make()


def brokers_of(zones):
    return ",".join(f"{zone.host}:{KAFKA_PORT + zone.number}" for zone in zones)


def secret_of(directory):
    """The path of a secret that the nodes share, since they are not on one machine."""
    path = pathlib.Path(directory) / "fleet.secret"
    path.write_text(os.urandom(32).hex())
    path.chmod(0o600)
    return str(path)


def skipping(test):
    """Runs the test, which gives an exit status; counts it as skipped where zones cannot be had."""
    try:
        return test()
    except (CannotMakeZones, CannotHaveKafka) as error:
        print(f"skipped, because there can be no zones: {error}")
        print("0 passed, 0 failed, 1 skipped")
        return 0


class Zone:
    """One zone. Its side of the veth pair is eth0, the other one is called like the zone."""

    def __init__(self, number):
        self.number = number
        self.name = f"zone-{number}"
        self.host = f"{NETWORK}.{number}"
        self.is_cut = False
        self.lost = []
        self.place = Place(self.host, ["ip", "netns", "exec", self.name], PORTS)

    def make(self):
        run("ip", "netns", "add", self.name)
        run("ip", "link", "add", self.name, "type", "veth", "peer", "name", "eth0", "netns",
            self.name)
        run("ip", "link", "set", self.name, "master", BRIDGE, "up")
        self.inside("ip", "address", "add", f"{self.host}/24", "dev", "eth0")
        self.inside("ip", "link", "set", "eth0", "up")
        self.inside("ip", "link", "set", "lo", "up")

    def inside(self, *command):
        run(*self.place.command, *command)

    def cut(self):
        """Nothing comes in, nothing goes out."""
        self.is_cut = True
        run("ip", "link", "set", self.name, "down")

    def cut_from(self, other):
        """The two zones do not reach each other; the third one reaches both."""
        for zone in (self, other):
            run("bridge", "link", "set", "dev", zone.name, "isolated", "on")

    def lose_what_goes_to(self, other):
        """What comes from there still arrives."""
        self.lost.append(other)
        self.inside("ip", "neighbour", "replace", other.host, "lladdr", NOBODY, "nud", "permanent",
                    "dev", "eth0")

    def heal(self):
        run("ip", "link", "set", self.name, "up")
        run("bridge", "link", "set", "dev", self.name, "isolated", "off")
        for other in self.lost:
            self.inside("ip", "neighbour", "delete", other.host, "dev", "eth0")
        self.lost = []
        self.is_cut = False

    def enter(self):
        """The thread that calls this opens its later connections in the zone."""
        with open(f"{NAMES}/{self.name}", "rb") as namespace:
            if libc.setns(namespace.fileno(), 0) != 0:
                raise CannotMakeZones(f"setns: {os.strerror(ctypes.get_errno())}")


class Residents:
    """How clients find the fleet: each thread lives in a zone and calls the node there."""

    def __init__(self, cluster, zones):
        self.cluster = cluster
        self.zones = zones
        self.local = threading.local()
        self.lock = threading.Lock()
        self.arrived = 0

    def find(self, _timeout=None):
        if not hasattr(self.local, "node"):
            with self.lock:
                index = self.arrived % len(self.zones)
                self.arrived += 1
            zone = self.zones[index]
            zone.enter()
            self.local.node = self.cluster.nodes[zone.number - 1]
        return (self.local.node.host, self.local.node.port)
