"""What people use instead of an SQS server, each with its own protocol and with what it has for
durability: messages per second that are accepted, and where it is simple, that pass through.

redis-benchmark and pgbench are the projects' own clients. beanstalkd, NATS and RabbitMQ have none
in Debian: a small loop here speaks their protocols on 64 connections, and being Python it may be
what limits them; its share of a core is reported with the figure.
"""
import json
import os
import pathlib
import re
import resource
import selectors
import socket
import subprocess
import sys
import time

from .machine import Unavailable, free_port, need, stop, wait_for_port

BODY = "x" * 100
CONNECTIONS = 64


class Figure:
    def __init__(self, rate, client_cpu=None):
        self.rate, self.client_cpu = rate, client_cpu


def drive(lab, protocol, port, seconds):
    """Runs this module as a client of its own, pinned like any other."""
    module = [sys.executable, "-m", "lab.natives", protocol, str(port), str(seconds)]
    result = json.loads(lab.client(module, cwd=os.path.dirname(os.path.dirname(__file__))))
    return Figure(result["rate"], result["cpu"])


# Closed loops over many sockets: each sends, waits for the end of its answer, and sends again.

class Loop:
    def __init__(self, port, connections, greet=None):
        self.selector = selectors.DefaultSelector()
        self.sockets = []
        for _ in range(connections):
            s = socket.create_connection(("127.0.0.1", port))
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if greet:
                greet(s)
            s.setblocking(False)
            self.sockets.append(s)

    def run(self, seconds, request, is_whole):
        """Rounds of request and answer per second."""
        buffers = {}
        for index, s in enumerate(self.sockets):
            self.selector.register(s, selectors.EVENT_READ, index)
            buffers[index] = b""
            s.sendall(request(index))
        done, began = 0, time.time()
        end = began + seconds
        while time.time() < end:
            for key, _ in self.selector.select(1):
                data = buffers[key.data] + key.fileobj.recv(65536)
                if not is_whole(data):
                    buffers[key.data] = data
                    continue
                buffers[key.data] = b""
                done += 1
                key.fileobj.sendall(request(key.data))
        return done / (time.time() - began)


def drive_beanstalkd(port, seconds):
    put = f"put 0 0 600 {len(BODY)}\r\n{BODY}\r\n".encode()

    def is_whole(data):
        if not data.endswith(b"\r\n"):
            return False
        if not data.startswith(b"INSERTED"):
            raise RuntimeError(data)
        return True
    return Loop(port, CONNECTIONS).run(seconds, lambda _: put, is_whole)


def drive_nats(port, seconds):
    def greet(s):
        s.recv(65536)  # INFO
        inbox = f"_INBOX.{s.fileno()}"
        s.sendall(f'CONNECT {{"verbose":false,"protocol":1}}\r\nSUB {inbox} 1\r\nPING\r\n'.encode())
        while b"PONG" not in s.recv(65536):
            pass
    loop = Loop(port, CONNECTIONS, greet)
    create = json.dumps({"name": "BENCH", "subjects": ["bench"], "storage": "file",
                         "retention": "workqueue", "num_replicas": 1})
    first = loop.sockets[0]
    first.setblocking(True)
    first.sendall(f"PUB $JS.API.STREAM.CREATE.BENCH _INBOX.{first.fileno()} {len(create)}\r\n"
                  f"{create}\r\n".encode())
    answer = first.recv(65536)
    while not answer.endswith(b"}\r\n"):
        answer += first.recv(65536)
    if b'"error"' in answer:
        raise RuntimeError(answer)
    first.setblocking(False)
    requests = [f"PUB bench _INBOX.{s.fileno()} {len(BODY)}\r\n{BODY}\r\n".encode()
                for s in loop.sockets]

    def is_whole(data):
        if b'"error"' in data:
            raise RuntimeError(data)
        return data.endswith(b"}\r\n")
    return loop.run(seconds, lambda index: requests[index], is_whole)


def drive_rabbitmq(port, seconds):
    """A window of unconfirmed publishes, as many as there would be connections."""
    import pika  # noqa: PLC0415: only this contender needs it
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port))
    channel = connection.channel()
    channel.queue_declare("bench", durable=True, arguments={"x-queue-type": "quorum"})
    impl = channel._impl  # The blocking channel waits for each confirm; the window needs more.
    confirmed = [0]

    def on_confirm(frame):
        method = frame.method
        confirmed[0] = max(confirmed[0], method.delivery_tag) if method.multiple \
            else confirmed[0] + 1
    impl.confirm_delivery(on_confirm)
    properties = pika.BasicProperties(delivery_mode=2)
    sent, began = 0, time.time()
    end = began + seconds
    while time.time() < end:
        while sent - confirmed[0] < CONNECTIONS:
            impl.basic_publish("", "bench", BODY.encode(), properties)
            sent += 1
        connection.process_data_events(time_limit=0)
    return confirmed[0] / (time.time() - began)


# Servers.

def redis(lab):
    """Streams, with the append-only file synced before each answer."""
    server, client = need("redis-server", "redis-server"), need("redis-benchmark", "redis-tools")
    port = free_port()
    process = lab.start([server, "--port", str(port), "--appendonly", "yes", "--appendfsync",
                         "always", "--save", "", "--dir", str(lab.directory("redis"))], "redis.log")
    try:
        wait_for_port(port, process, what="redis")
        output = lab.client([client, "-p", str(port), "-c", str(CONNECTIONS), "-n",
                             str(int(20_000 * lab.seconds)), "--csv", "XADD", "s", "*", "b", BODY])
        return Figure(float(output.splitlines()[-1].split(",")[1].strip('"')))
    finally:
        stop(process)


def beanstalkd(lab):
    """A binlog that is synced after every write (-f0)."""
    program = need("beanstalkd", "beanstalkd")
    port = free_port()
    process = lab.start([program, "-l", "127.0.0.1", "-p", str(port), "-b",
                         str(lab.directory("beanstalkd")), "-f0"], "beanstalkd.log")
    try:
        wait_for_port(port, process, what="beanstalkd")
        return drive(lab, "beanstalkd", port, lab.seconds)
    finally:
        stop(process)


def nats(lab):
    """JetStream, file storage, one replica. Debian's version syncs every two minutes: not durable."""
    program = need("nats-server", "nats-server")
    port = free_port()
    process = lab.start([program, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd",
                         str(lab.directory("nats"))], "nats.log")
    try:
        wait_for_port(port, process, what="nats-server")
        return drive(lab, "nats", port, lab.seconds)
    finally:
        stop(process)


def rabbitmq(lab):
    """A quorum queue of one node with publisher confirms, which come after its sync."""
    # The command in the path switches the user and drops the environment; this one does not.
    program = "/usr/lib/rabbitmq/bin/rabbitmq-server"
    if not os.path.exists(program):
        raise Unavailable("rabbitmq-server is not installed (see bench/setup-peers)")
    try:
        lab.client([sys.executable, "-c", "import pika"])
    except RuntimeError:
        raise Unavailable(f"pika is missing for {sys.executable} (bench/setup-peers)") from None
    directory, port = lab.directory("rabbitmq"), free_port()
    process = lab.start([program], "rabbitmq.log", {
        "HOME": str(directory), "RABBITMQ_NODENAME": f"bench{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1", "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_MNESIA_BASE": str(directory), "RABBITMQ_LOG_BASE": str(directory),
        "RABBITMQ_PID_FILE": str(directory / "pid"), "RABBITMQ_ENABLED_PLUGINS_FILE":
        str(directory / "plugins")})
    try:
        wait_for_port(port, process, what="rabbitmq-server")
        time.sleep(3)  # It listens before it can declare queues.
        return drive(lab, "rabbitmq", port, lab.seconds)
    finally:
        stop(process)


def postgresql(lab):
    """A table and SKIP LOCKED, synchronous commits: one insert a transaction."""
    return postgresql_with(lab, "INSERT INTO jobs (body) VALUES ('" + BODY + "');\n")


def postgresql_cycle(lab):
    """One insert, and one delete of the oldest that nobody else has, each a transaction."""
    return postgresql_with(
        lab, "INSERT INTO jobs (body) VALUES ('" + BODY + "');\nDELETE FROM jobs WHERE id = "
        "(SELECT id FROM jobs ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING body;\n")


def postgresql_with(lab, script):
    folders = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
    if not folders:
        raise Unavailable("PostgreSQL is not installed (package postgresql; see bench/setup-peers)")
    binaries = folders[-1]
    directory, port = lab.directory("postgresql"), free_port()
    # PostgreSQL refuses to run as root; its package creates a user for it.
    user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] \
        if os.geteuid() == 0 else []
    os.chmod(lab.scratch, 0o755)
    if user:
        subprocess.run(["chown", "postgres", str(directory)], check=True)
    subprocess.run([*user, binaries / "initdb", "-D", directory / "data", "-U", "bench", "-A",
                    "trust"], check=True, capture_output=True, cwd="/")
    process = lab.start([*user, str(binaries / "postgres"), "-D", str(directory / "data"), "-p",
                         str(port), "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=100",
                         "-c", f"unix_socket_directories={directory}"], "postgresql.log", cwd="/")
    try:
        wait_for_port(port, process, what="PostgreSQL")
        login = ["-h", "127.0.0.1", "-p", str(port), "-U", "bench", "postgres"]
        lab.client(["psql", *login, "-c", "CREATE TABLE jobs (id bigserial PRIMARY KEY, body text)"])
        (lab.scratch / "script.sql").write_text(script)
        output = lab.client([str(binaries / "pgbench"), "-n", "-M", "prepared", "-c",
                             str(CONNECTIONS), "-j", "1", "-T", str(max(1, int(lab.seconds))), "-f",
                             str(lab.scratch / "script.sql"), *login])
        return Figure(float(re.search(r"tps = ([\d.]+)", output).group(1)))
    finally:
        stop(process)


def main():
    protocol, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    drivers = {"beanstalkd": drive_beanstalkd, "nats": drive_nats, "rabbitmq": drive_rabbitmq}
    began = time.time()
    rate = drivers[protocol](port, seconds)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"rate": rate,
                      "cpu": (usage.ru_utime + usage.ru_stime) / (time.time() - began)}))


if __name__ == "__main__":
    main()
