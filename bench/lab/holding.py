"""What it costs to hold things: a large backlog (R5, R6, R7) and many parked polls (R9)."""
import json
import os
import pathlib
import signal
import socket
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


def backlog(lab, messages):
    """Throughput, memory and restart with that many messages of 200 bytes waiting."""
    arguments = ["--memory", "256MiB"]
    data = lab.directory("backlog")
    cycle = ["--batch", 10, "--body-size", 200]
    start_millis, idle = empty_server(lab)
    with servers.stanchion(lab, *arguments, data=data) as (url, process, _):
        few = lab.bench(url, *cycle, "--backlog", 1000)["result"]
        print(f"  with 1,000 waiting: {few:,.0f}/s", flush=True)
        began = time.time()
        lab.bench(url, "--workload", "send", "--queue", "backlog", "--body-size", 200, "--batch", 10,
                  "--count", messages, "--check", 100)
        print(f"  {messages:,} sent in {time.time() - began:.0f} s", flush=True)
        many = lab.bench(url, *cycle, "--queue", "backlog")["result"]
        print(f"  with {messages:,} waiting: {many:,.0f}/s", flush=True)
        resident = resident_bytes(process.pid)
        os.killpg(os.getpgid(process.pid), signal.SIGKILL)
        process.wait()
    disk = sum(f.stat().st_size for f in pathlib.Path(data).rglob("*") if f.is_file())
    with servers.stanchion(lab, *arguments, data=data) as (url, process, restart_millis):
        waiting = count_waiting(url, "backlog")
        after = resident_bytes(process.pid)
    if abs(waiting - messages) > messages // 100:
        raise SystemExit(f"{waiting} messages after the restart instead of about {messages}")
    binary = pathlib.Path(lab.binary).stat().st_size
    relative = many / few
    rows = [
        ["R5", f"cycles/s with {messages:,} waiting relative to 1,000", f"{relative:.2f}",
         "0.8 / 0.95", "aim" if relative >= 0.95 else "held" if relative >= 0.8 else "**not held**"],
        ["R6", "resident memory with them, MiB", f"{resident / MIB:.0f} ({after / MIB:.0f} after the restart)",
         "512 / 256", verdict(resident / MIB, 512, 256)],
        ["R7", "ready after SIGKILL with them, s", f"{restart_millis / 1000:.2f}", "5 / 2",
         verdict(restart_millis / 1000, 5, 2)],
        ["R7", "empty start, ms", start_millis, "200 / 24", verdict(start_millis, 200, 24)],
        ["R7", "idle memory, MiB", f"{idle / MIB:.1f}", "40 / 13", verdict(idle / MIB, 40, 13)],
        ["R7", "binary, MB", f"{binary / 1e6:.1f}", "40 / 19", verdict(binary / 1e6, 40, 19)],
    ]
    return (f"{describe()}. On disk: {disk / MIB:,.0f} MiB.\n\n" +
            figures.table(["", "what", "measured", "at least / aim", ""], rows))


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
