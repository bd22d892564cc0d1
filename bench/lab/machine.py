"""Processes pinned to cores: the server on one, the client on another."""
import json
import os
import pathlib
import platform
import shutil
import signal
import socket
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = ROOT / "build" / "peers"
SERVER_CORE = "0"
CLIENT_CORE = "1"


class Unavailable(Exception):
    """A contender that this machine cannot run; the message says what is missing."""


class Lab:
    """Where measurements happen: the binary, the scratch space, and how processes are run."""

    def __init__(self, binary, scratch=None, realtime=False, seconds=5.0):
        self.binary = str(pathlib.Path(binary).resolve())
        self.realtime = realtime
        self.seconds = seconds
        # Beside the sources by default: /tmp may be in memory, where a sync costs nothing.
        base = pathlib.Path(scratch) if scratch else ROOT / "build"
        base.mkdir(parents=True, exist_ok=True)
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="bench-", dir=base))
        self.cores = os.cpu_count() or 1

    def close(self):
        shutil.rmtree(self.scratch, ignore_errors=True)

    def directory(self, name):
        path = self.scratch / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return path

    def prefix(self, core):
        """Pins to a core where there are two. Real-time priority, if it was asked for, keeps other
        work on the machine from counting; by turns, because some servers have many threads."""
        command = ["taskset", "-c", core] if self.cores > 1 else []
        return (["chrt", "-r", "1"] if self.realtime else []) + command

    def start(self, command, log, environment=None, cwd=None):
        with open(self.scratch / log, "w") as out:
            return subprocess.Popen([*self.prefix(SERVER_CORE), *command], stdout=out, stderr=out,
                                    stdin=subprocess.DEVNULL, cwd=cwd or self.scratch,
                                    env={**os.environ, **(environment or {})},
                                    start_new_session=True)

    def client(self, command, timeout=600, **more):
        """Runs a client to its end; its standard output."""
        done = subprocess.run([*self.prefix(CLIENT_CORE), *command], capture_output=True, text=True,
                              timeout=timeout, **more)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command[:4]))}…: {done.stderr.strip() or done.stdout}")
        return done.stdout

    def bench(self, url, *arguments, seconds=None, warm_up=1):
        """Runs `stanchion bench`; its report, after checking that nothing was wrong."""
        command = [self.binary, "bench", "--json", "--endpoint", url, "--duration",
                   str(seconds or self.seconds), "--warm-up", str(warm_up), *map(str, arguments)]
        # The client has a core to itself, and waking it would be charged to the server. With
        # real-time priority it would keep even the kernel off that core.
        if self.cores > 1 and not self.realtime:
            command.append("--busy-poll")
        return json.loads(self.client(command))


def stop(process, grace=10):
    """Ends one of our processes and everything that it started."""
    if process.poll() is not None:
        return
    group = os.getpgid(process.pid)
    os.killpg(group, signal.SIGTERM)
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        os.killpg(group, signal.SIGKILL)
        process.wait()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for_port(port, process, seconds=90, what="it"):
    end = time.time() + seconds
    while time.time() < end:
        if process.poll() is not None:
            raise Unavailable(f"{what} ended with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise Unavailable(f"{what} did not listen within {seconds} s")


def need(program, package):
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        raise Unavailable(f"{program} is not installed (package {package}; see bench/setup-peers)")
    return path


def resident_bytes(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def describe():
    model = next((line.split(":", 1)[1].strip()
                  for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB, Linux {platform.release()}, "
            f"file system of the data: {file_system(ROOT)}, commit {commit()}")


def commit():
    said = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], text=True,
                          capture_output=True, check=False).stdout.strip()
    return said or "unknown"


def file_system(path):
    best, kind = "", "unknown"
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, mount, fs, *_ = line.split()
        if str(path).startswith(mount) and len(mount) >= len(best):
            best, kind = mount, fs
    return kind
