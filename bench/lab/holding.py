"""What it costs to hold things: a large backlog (R5, R6, R7) and many parked polls (R9)."""
import json
import os
import pathlib
import signal
import socket
import statistics
import time
import urllib.request

from . import figures, servers
from .machine import cpu_seconds, describe, resident_bytes

MIB = 1 << 20


def verdict(value, at_least, aim):
    return "aim" if value <= aim else "held" if value <= at_least else "**not held**"


def empty_server(lab):
    """Milliseconds to ready, and resident bytes, of a server that holds nothing."""
    with servers.stanchion(lab) as (_, process, millis):
        time.sleep(1)
        return millis, resident_bytes(process.pid)


def size_on_disk(data):
    total = 0
    for file in pathlib.Path(data).rglob("*"):
        try:
            total += file.stat().st_size if file.is_file() else 0
        except FileNotFoundError:
            pass
    return total


def seconds_to_shrink(data, to_bytes, limit=180):
    """How long the directory takes to become that small; None if it does not."""
    began = time.time()
    while time.time() < began + limit:
        if size_on_disk(data) <= to_bytes:
            return time.time() - began
        time.sleep(0.5)
    return None


def kill(process):
    os.killpg(os.getpgid(process.pid), signal.SIGKILL)
    process.wait()


def few_and_many(lab, url, rounds=7):
    """Cycles per second without the backlog and on it, in turns, once memory is full."""
    cycle = ["--batch", 10, "--body-size", 200]
    lab.bench(url, *cycle, "--queue", "backlog", seconds=10)
    few, many, relative = [], [], []
    before = lab.bench(url, *cycle, "--backlog", 1000)["result"]
    for _ in range(rounds):
        many.append(lab.bench(url, *cycle, "--queue", "backlog")["result"])
        after = lab.bench(url, *cycle, "--backlog", 1000)["result"]
        few.append(after)
        relative.append(many[-1] / ((before + after) / 2))
        before = after
        print(f"  beside it {few[-1]:,.0f}/s, on it {many[-1]:,.0f}/s: {relative[-1]:.2f}", flush=True)
    return statistics.median(few), statistics.median(many), relative


def backlog(lab, messages):
    """Throughput, memory and restart with that many messages of 200 bytes waiting."""
    arguments = ["--memory", "256MiB"]
    data = lab.directory("backlog")
    start_millis, idle = empty_server(lab)
    with servers.stanchion(lab, *arguments, data=data) as (url, process, _):
        began = time.time()
        lab.bench(url, "--workload", "send", "--queue", "backlog", "--body-size", 200, "--batch", 10,
                  "--count", messages, "--check", 100)
        filling = time.time() - began
        print(f"  {messages:,} sent in {filling:.0f} s", flush=True)
        few, many, ratios = few_and_many(lab, url)
        resident = resident_bytes(process.pid)
        kill(process)
    disk = size_on_disk(data)
    with servers.stanchion(lab, *arguments, data=data) as (url, process, restart_millis):
        waiting = count_waiting(url, "backlog")
        after = resident_bytes(process.pid)
        call(url, "PurgeQueue", QueueUrl=call(url, "GetQueueUrl", QueueName="backlog")["QueueUrl"])
        shrunk = seconds_to_shrink(data, 256 * MIB)
    if abs(waiting - messages) > messages // 100:
        raise SystemExit(f"{waiting} messages after the restart instead of about {messages}")
    binary = pathlib.Path(lab.binary).stat().st_size
    relative = statistics.median(ratios)
    rows = [
        ["R5", f"cycles/s with {messages:,} waiting relative to 1,000",
         f"{relative:.2f} ({min(ratios):.2f}–{max(ratios):.2f})",
         "0.8 / 0.95", "aim" if relative >= 0.95 else "held" if relative >= 0.8 else "**not held**"],
        ["R6", "resident memory with them, MiB", f"{resident / MIB:.0f} ({after / MIB:.0f} after the restart)",
         "512 / 256", verdict(resident / MIB, 512, 256)],
        ["R7", "ready after SIGKILL with them, s", f"{restart_millis / 1000:.2f}", "5 / 2",
         verdict(restart_millis / 1000, 5, 2)],
        ["R7", "empty start, ms", start_millis, "200 / 24", verdict(start_millis, 200, 24)],
        ["R7", "idle memory, MiB", f"{idle / MIB:.1f}", "40 / 13", verdict(idle / MIB, 40, 13)],
        ["R7", "binary, MB", f"{binary / 1e6:.1f}", "40 / 19", verdict(binary / 1e6, 40, 19)],
    ]
    shrink = f"after {shrunk:.0f} s" if shrunk is not None else "not within three minutes"
    return (f"{describe()}. {messages:,} messages were sent in {filling:.0f} s; then, by turns, "
            f"{few:,.0f} cycles/s beside them and {many:,.0f} on them (medians). On disk: "
            f"{disk / MIB:,.0f} MiB; after a purge less than 256 MiB, most of it the journal's space for "
            f"what comes: {shrink}.\n\n" +
            figures.table(["", "what", "measured", "at least / aim", ""], rows))


def many(lab):
    """Things that can be many or large: FIFO groups, queues, bodies."""
    rows = []

    def row(what, load, process, data, *arguments):
        resident = resident_bytes(process.pid)
        kill(process)
        with servers.stanchion(lab, *arguments, data=data) as (_, again, millis):
            rows.append([what, load, f"{resident / MIB:.0f}", f"{size_on_disk(data) / MIB:,.0f}",
                         f"{millis / 1000:.2f}", f"{resident_bytes(again.pid) / MIB:.0f}"])
        print("  " + " | ".join(rows[-1]), flush=True)

    memory = ("--memory", "256MiB")
    data = lab.directory("groups")
    # Groups count toward memory, and all groups of one queue are in one shard.
    enough = ("--memory", "1GiB")
    with servers.stanchion(lab, *enough, data=data) as (url, process, _):
        fifo = ["--fifo", "--groups", 1_000_000, "--batch", 10, "--queue", "groups.fifo"]
        sent = lab.bench(url, "--workload", "send", *fifo, "--count", 1_000_000)["result"]
        cycles = lab.bench(url, *fifo)["result"]
        row("1,000,000 FIFO groups with a message each", f"{sent:,.0f} sends, {cycles:,.0f} cycles",
            process, data, *memory)
    data = lab.directory("queues")
    with servers.stanchion(lab, *memory, data=data) as (url, process, _):
        report = lab.bench(url, "--workload", "send", "--queues", 100_000, "--count", 1_000_000,
                           "--batch", 10, "--keep", warm_up=0)
        row("100,000 queues with ten messages each", f"{report['result']:,.0f} sends", process, data,
            *memory)
    data = lab.directory("bodies")
    with servers.stanchion(lab, *memory, data=data) as (url, process, _):
        large = ["--body-size", 1 << 20, "--connections", 16, "--queue", "bodies"]
        sent = lab.bench(url, "--workload", "send", *large, "--count", 2560)["result"]
        cycles = lab.bench(url, *large)["result"]
        row("2,560 bodies of 1 MiB, ten times the budget",
            f"{sent:,.0f} sends, {cycles:,.0f} cycles", process, data, *memory)
    return f"{describe()}. `--memory 256MiB`, for the groups `1GiB`.\n\n" + figures.table(
        ["what waits", "messages/s", "resident, MiB", "on disk, MiB", "ready after SIGKILL, s",
         "resident then, MiB"], rows)


def call(url, action, **parameters):
    request = urllib.request.Request(url, data=json.dumps(parameters).encode(), headers={
        "X-Amz-Target": f"AmazonSQS.{action}", "Content-Type": "application/x-amz-json-1.0"})
    return json.loads(urllib.request.urlopen(request, timeout=30).read() or b"{}")


def count_waiting(url, name):
    queue = call(url, "GetQueueUrl", QueueName=name)["QueueUrl"]
    attributes = call(url, "GetQueueAttributes", QueueUrl=queue, AttributeNames=["All"])["Attributes"]
    return sum(int(attributes[f"ApproximateNumberOfMessages{kind}"])
               for kind in ("", "NotVisible", "Delayed"))


def polls(lab, number, seconds=10):
    """Memory and idle CPU of a server on which that many receives wait."""
    with servers.stanchion(lab) as (url, process, _):
        queue = call(url, "CreateQueue", QueueName="polled")["QueueUrl"]
        before = resident_bytes(process.pid)
        body = json.dumps({"QueueUrl": queue, "WaitTimeSeconds": 20})
        request = (f"POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: AmazonSQS.ReceiveMessage\r\n"
                   f"Content-Type: application/x-amz-json-1.0\r\nContent-Length: {len(body)}\r\n\r\n"
                   f"{body}").encode()
        host, port = url.removeprefix("http://").split(":")
        sockets = []
        try:
            for _ in range(number):
                s = socket.create_connection((host, int(port)))
                s.sendall(request)
                sockets.append(s)
            time.sleep(1)
            used = cpu_seconds(process.pid)
            time.sleep(seconds)
            idle = (cpu_seconds(process.pid) - used) / seconds
            resident = resident_bytes(process.pid)
        finally:
            for s in sockets:
                s.close()
    rows = [["R9", f"memory with {number:,} parked polls, MiB",
             f"{resident / MIB:.0f} ({(resident - before) / number / 1024:.1f} KiB each)", "300 / 150",
             verdict(resident / MIB, 300, 150)],
            ["R9", "CPU meanwhile, % of a core", f"{idle * 100:.2f}", "2 / 0.5",
             verdict(idle * 100, 2, 0.5)]]
    return f"{describe()}.\n\n" + figures.table(["", "what", "measured", "at least / aim", ""], rows)
