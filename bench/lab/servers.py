"""Servers that speak SQS, and nginx: each a context manager that gives the URL to call."""
import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import time
import urllib.request

from .machine import PEERS, Unavailable, free_port, need, stop, wait_for_port

READY = re.compile(r"^ready (\S+) after (\d+) ms$", re.MULTILINE)


@contextlib.contextmanager
def stanchion(lab, *arguments, data=None, log="stanchion.log"):
    """Gives (url, process, milliseconds to ready). `data` None: a fresh directory on the disk."""
    directory = data or lab.directory("stanchion-data")
    process = lab.start([lab.binary, "serve", "--listen", "127.0.0.1:0", "--threads", "1",
                         "--shards", "1", "--data", str(directory), *arguments], log)
    try:
        match, end = None, time.time() + 600
        while match is None:
            text = (lab.scratch / log).read_text()
            if process.poll() is not None or time.time() > end:
                raise RuntimeError(f"stanchion did not start: {text}")
            match = READY.search(text)
            time.sleep(0.005)
        yield match.group(1), process, int(match.group(2))
    finally:
        stop(process, grace=60)


def sample_answer(lab):
    """The body of an answer to SendMessage, so that nginx can send as many bytes."""
    with stanchion(lab) as (url, _, _):
        def call(action, body):
            request = urllib.request.Request(
                url, data=json.dumps(body).encode(),
                headers={"X-Amz-Target": f"AmazonSQS.{action}",
                         "Content-Type": "application/x-amz-json-1.0"})
            return urllib.request.urlopen(request, timeout=10).read().decode()
        queue = json.loads(call("CreateQueue", {"QueueName": "sample"}))["QueueUrl"]
        return call("SendMessage", {"QueueUrl": queue, "MessageBody": "x" * 100})


@contextlib.contextmanager
def running(lab, what, port, command, environment=None):
    """Starts the server, waits until it listens, gives its URL, and stops it in the end."""
    process = lab.start(command, f"{what.lower()}.log", environment)
    try:
        wait_for_port(port, process, what=what)
        yield f"http://127.0.0.1:{port}"
    finally:
        stop(process)


def peer(path, what):
    """A peer's program as bench/setup-peers leaves it."""
    program = PEERS / path
    if not program.exists():
        raise Unavailable(f"{what} is not in build/peers/{program.relative_to(PEERS).parts[0]} "
                          "(bench/setup-peers)")
    return str(program)


def nginx(lab, body):
    program = need("nginx", "nginx-light")
    directory = lab.directory("nginx")
    port = free_port()
    temporary = "".join(f"{kind}_temp_path {directory}/{kind};\n"
                        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (directory / "nginx.conf").write_text(f"""
daemon off; worker_processes 1; pid {directory}/pid; error_log {directory}/error.log;
events {{ worker_connections 4096; }}
http {{ access_log off; keepalive_requests 1000000000; {temporary}
  server {{ listen 127.0.0.1:{port};
    location / {{ default_type application/x-amz-json-1.0;
      add_header x-amzn-RequestId 00000000-0000-0000-0000-000000000000;
      return 200 '{body}'; }} }} }}
""")
    return running(lab, "nginx", port, [program, "-c", str(directory / "nginx.conf"), "-e",
                                        str(directory / "error.log")])


def elasticmq(lab, persistent=False):
    java = need("java", "default-jre-headless")
    jars = PEERS / "elasticmq"
    if not any(jars.glob("elasticmq-server_*.jar")):
        raise Unavailable("ElasticMQ's jars are not in build/peers/elasticmq (bench/setup-peers)")
    directory = lab.directory("elasticmq")
    port = free_port()
    storage = f"""messages-storage {{ enabled = true
  uri = "jdbc:h2:{directory}/messages" }}
queues-storage {{ enabled = true
  path = "{directory}/queues.conf" }}""" if persistent else ""
    (directory / "server.conf").write_text(f"""
include classpath("application.conf")
node-address {{ protocol = http
  host = 127.0.0.1
  port = {port} }}
rest-sqs {{ enabled = true
  bind-port = {port}
  bind-hostname = "127.0.0.1"
  sqs-limits = strict }}
rest-stats {{ enabled = false }}
{storage}
""")
    return running(lab, "ElasticMQ", port, [java, "-Xmx2g", f"-Dconfig.file={directory}/server.conf",
                                            "-cp", f"{jars}/*", "org.elasticmq.server.Main"])


def moto(lab):
    port = free_port()
    return running(lab, "moto", port, [peer("moto/bin/moto_server", "moto"), "-H", "127.0.0.1", "-p",
                                       str(port)])


def localstack(lab):
    port = free_port()
    return running(lab, "LocalStack", port,
                   [peer("localstack/bin/python", "LocalStack"), "-m", "localstack.runtime.main"],
                   {"SERVICES": "sqs", "GATEWAY_LISTEN": f"127.0.0.1:{port}",
                    "DISABLE_EVENTS": "1", "SKIP_SSL_CERT_DOWNLOAD": "1",
                    "LOCALSTACK_VOLUME_DIR": str(lab.directory("localstack"))})


def goaws(lab):
    program = peer("goaws/goaws", "GoAWS")
    directory = lab.directory("goaws")
    port = free_port()
    (directory / "goaws.yaml").write_text(
        f"Local:\n  Host: 127.0.0.1\n  Port: {port}\n  Region: us-east-1\n  AccountId: \"000000000000\"\n"
        "  LogToFile: false\n")
    return running(lab, "GoAWS", port, [program, "-config", str(directory / "goaws.yaml"), "Local"])
