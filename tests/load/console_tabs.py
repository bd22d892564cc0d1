"""What open tabs of the console cost the server.

    console_tabs.py --binary build/release/stanchion [--tabs 100] [--queues 1000] [--rounds 5]

Streams of events are opened and read, as that many tabs of the console do. Printed are the processor
time of the server while nobody else calls it, without and with the tabs, and what
`stanchion bench` sends, without and with them, by turns: per second, and with how much of the
server's processor time, which also means something beside other programs.
"""

import argparse
import json
import pathlib
import selectors
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

from server import Server
from signed_client import Client

def cpu_seconds(pid):
    """Of all threads, exactly: short bursts fall between the ticks of /proc/PID/stat."""
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


class Tabs:
    """Streams that are read by one thread as their bytes come."""

    def __init__(self, port, count):
        self.selector = selectors.DefaultSelector()
        self.bytes = 0
        self.ending = False
        self.streams = []
        for _ in range(count):
            stream = socket.create_connection(("127.0.0.1", port))
            stream.sendall(b"GET /console/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.streams.append(stream)
            self.selector.register(stream, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        while not self.ending:
            for key, _ in self.selector.select(0.2):
                data = key.fileobj.recv(1 << 20)
                if not data:
                    raise RuntimeError("a stream has ended")
                self.bytes += len(data)

    def close(self):
        self.ending = True
        self.thread.join()
        for stream in self.streams:
            stream.close()


def share_of_processor(server, seconds):
    began, before = time.monotonic(), cpu_seconds(server.process.pid)
    time.sleep(seconds)
    return (cpu_seconds(server.process.pid) - before) / (time.monotonic() - began)


def measure_sends(binary, server, seconds):
    """(sends per second, microseconds of the server's processor time for each)."""
    before = cpu_seconds(server.process.pid)
    done = subprocess.run([binary, "bench", "--endpoint", server.url, "--duration", str(seconds),
                           "--warm-up", "0", "--workload", "send", "--json", "--quiet"],
                          capture_output=True, text=True, check=True)
    took = cpu_seconds(server.process.pid) - before
    told = json.loads(done.stdout)
    return told["result"], took * 1e6 / told["checks"]["sent"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default="build/release/stanchion")
    parser.add_argument("--tabs", type=int, default=100)
    parser.add_argument("--queues", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=10)
    options = parser.parse_args()
    binary = str(pathlib.Path(options.binary).resolve())
    directory = tempfile.mkdtemp(prefix="stanchion-tabs-")
    server = Server(binary, "--data", directory + "/data", "--listen", "127.0.0.1:0")
    try:
        measure(options, binary, server)
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


def measure(options, binary, server):
    port = int(server.url.rsplit(":", 1)[1])
    client = Client(server.url)
    for i in range(options.queues):
        client.call("CreateQueue", QueueName=f"queue-{i:05}")
        # Each queue has a message, so that its age, and with it every event, differs.
        client.call("SendMessage", QueueUrl=f"queue-{i:05}", MessageBody="x")
    idle = share_of_processor(server, options.seconds)
    tabs = Tabs(port, options.tabs)
    time.sleep(2)  # Until all have their first event.
    before = tabs.bytes
    watched = share_of_processor(server, options.seconds)
    read = (tabs.bytes - before) / options.seconds
    tabs.close()
    print(f"processor: {idle:.2%} of one without, {watched:.2%} with {options.tabs} tabs on "
          f"{options.queues} queues, which read {read / 1e6:.1f} MB/s", flush=True)
    figures = {"without": [], "with": []}
    for _ in range(options.rounds):
        figures["without"].append(measure_sends(binary, server, options.seconds))
        tabs = Tabs(port, options.tabs)
        figures["with"].append(measure_sends(binary, server, options.seconds))
        tabs.close()
    for at, unit in enumerate(("sends/s", "µs of processor time a send")):
        medians = []
        for name, pairs in figures.items():
            values = [pair[at] for pair in pairs]
            medians.append(statistics.median(values))
            print(f"{unit} {name} tabs: median {medians[-1]:,.1f} of "
                  + " ".join(f"{value:,.1f}" for value in values))
        print(f"difference: {medians[1] / medians[0] - 1:+.1%}")


if __name__ == "__main__":
    main()
