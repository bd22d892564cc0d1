"""Three zones on this machine: network namespaces that a bridge joins, and that can be cut off.

    this process, 10.77.0.254 ── bridge ─┬─ zone-1, 10.77.0.1: a broker
                                         ├─ home-1, 10.77.0.11: a node and clients, of the same zone
                                         ├─ zone-2, 10.77.0.2
                                         ├─ home-2, 10.77.0.12
                                         └─ …

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
OUR_HOST = f"{NETWORK}.254"
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
    run("ip", "address", "add", f"{OUR_HOST}/24", "dev", BRIDGE)
    run("ip", "link", "set", BRIDGE, "up")
    for zone in zones:
        zone.make(zones)


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


class Site:
    """A network namespace. Its side of the veth pair is eth0, the other one is called like it."""

    def __init__(self, name, host):
        self.name = name
        self.host = host
        self.command = ["ip", "netns", "exec", name]

    def make(self):
        run("ip", "netns", "add", self.name)
        run("ip", "link", "add", self.name, "type", "veth", "peer", "name", "eth0", "netns",
            self.name)
        run("ip", "link", "set", self.name, "master", BRIDGE, "up")
        self.inside("ip", "address", "add", f"{self.host}/24", "dev", "eth0")
        self.inside("ip", "link", "set", "eth0", "up")
        self.inside("ip", "link", "set", "lo", "up")

    def inside(self, *command):
        run(*self.command, *command)

    def neighbour(self, what, host, *rest):
        self.inside("ip", "neighbour", what, host, *rest, "dev", "eth0")


class Zone:
    """One zone: a broker, and apart from it a node with its clients."""

    def __init__(self, number):
        self.number = number
        self.broker = Site(f"zone-{number}", f"{NETWORK}.{number}")
        self.home = Site(f"home-{number}", f"{NETWORK}.1{number}")
        self.sites = [self.broker, self.home]
        self.name, self.host = self.broker.name, self.broker.host
        self.place = Place(self.home.host, self.home.command, PORTS)
        self.others = []
        self.lost = set()  # (site, host): what goes from there to there.

    def make(self, zones):
        self.others = [zone for zone in zones if zone is not self]
        for site in self.sites:
            site.make()

    def cut(self):
        """Nothing comes in, nothing goes out. Within the zone everything goes on."""
        for other in self.others:
            self.cut_from(other)
        for site in self.sites:
            self.lose(site, OUR_HOST)

    def cut_from(self, other):
        """The two zones do not reach each other; the third one reaches both."""
        for here in self.sites:
            for there in other.sites:
                self.lose(here, there.host)
                self.lose(there, here.host)

    def lose_what_goes_to(self, other):
        """What comes from there still arrives."""
        for here in self.sites:
            for there in other.sites:
                self.lose(here, there.host)

    def miss_broker(self, other):
        """The node does not reach the broker of that zone; everybody else does."""
        self.lose(self.home, other.broker.host)

    def lose(self, site, host):
        self.lost.add((site, host))
        site.neighbour("replace", host, "lladdr", NOBODY, "nud", "permanent")

    def heal(self):
        for site, host in self.lost:
            site.neighbour("delete", host)
        self.lost = set()

    def enter(self):
        """The thread that calls this opens its later connections in the zone."""
        with open(f"{NAMES}/{self.home.name}", "rb") as namespace:
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
