"""What goes wrong around a server: a log that nobody reads, clients that speak something else."""
import contextlib
import gzip
import http.client
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse

from case import IN_MEMORY, check
from server import READY, Server, clean_environment, run
from signed_client import Client


def is_whole(answer):
    head, end, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"\r\ncontent-length: (\d+)", head.lower())
    return end and (not length or len(body) >= int(length[1]))


def exchange(url, data, answers=1):
    """The answers to these bytes, up to this many or to the end."""
    address = urllib.parse.urlsplit(url)
    with socket.create_connection((address.hostname, address.port), timeout=20) as connection:
        connection.sendall(data)
        got = b""
        while got.count(b"HTTP/1.1 ") < answers or not is_whole(got.rpartition(b"HTTP/1.1 ")[2]):
            more = connection.recv(65536)
            if not more:
                break
            got += more
        return got.decode("latin-1")


def a_log_that_nobody_reads_stops_nobody(case):
    process = subprocess.Popen(
        [case.binary, "serve", "--in-memory", "--threads", "1", "--listen", "127.0.0.1:0",
         "--log-access"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        cwd=case.directory, env=clean_environment(None))
    try:
        url = next(match.group(1) for line in process.stdout if (match := READY.match(line.rstrip())))
        # Far more lines than a pipe and the log's buffer hold.
        calls = 20_000
        request = b"GET /?Action=ListQueues HTTP/1.1\r\nHost: localhost\r\n\r\n"
        answers = 0
        for _ in range(calls // 1000):
            answers += exchange(url, request * 1000, 1000).count("HTTP/1.1 200")
        check(answers == calls, answers)
        check("200 OK" in exchange(url, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        # A reader that comes later is told how many lines were lost.
        lines = dropped = 0
        while lines + dropped < calls:
            line = process.stderr.readline()
            if "were dropped" in line:
                dropped += int(line.split(" lines of the log")[0].rsplit(" ", 1)[1])
            lines += "access " in line
        check(dropped > 0 and lines + dropped == calls, (lines, dropped, calls))
        process.terminate()
        check(process.wait(20) == 0, process.returncode)
    finally:
        process.kill()
        process.wait()


def full_pipe():
    """The two ends of a pipe that has no room."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, bytes(4096))
    os.set_blocking(writer, True)
    return reader, writer


def a_server_ends_though_nobody_reads_its_output(case):
    path = str(case.directory / "s.sock")
    reader, writer = full_pipe()
    process = subprocess.Popen(
        [case.binary, "serve", "--in-memory", "--threads", "1", "--unix-socket", path],
        stdout=writer, stderr=subprocess.DEVNULL, cwd=case.directory, env=clean_environment(None))
    try:
        deadline = time.monotonic() + 20
        while case.run("health", "--url", f"unix:{path}")[0] != 0:
            check(time.monotonic() < deadline, "it does not answer")
        process.terminate()
        check(process.wait(20) == 0, process.returncode)
    finally:
        process.kill()
        process.wait()
        os.close(reader)
        os.close(writer)


def a_server_ends_though_its_service_manager_reads_nothing(case):
    path = str(case.directory / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, \
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        manager.bind(path)
        other.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                other.sendto(b"X=1", path)
        with case.serve("--in-memory", "--threads", "1", "--listen", "127.0.0.1:0",
                        environment={"NOTIFY_SOCKET": path}) as server:
            check(server.stop()[0] == 0, server.log)


def a_reload_does_not_wait_for_a_pipe(case):
    with case.serve_config(IN_MEMORY) as server:
        settings = case.directory / "s.toml"
        settings.unlink()
        os.mkfifo(settings)
        server.reload("nothing came in 10 s")
        check(server.stop()[0] == 0, server.log)


def settings_may_come_through_a_pipe(case):
    path = case.directory / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_text(IN_MEMORY))
    writer.start()
    with case.serve("--config", str(path)) as server:
        check("in memory" in server.output[0], server.output)
    writer.join()


def interrupted_calls_on_sockets_are_made_again(case):
    if shutil.which("strace") is None:
        return
    calls = 20
    request = b"GET /?Action=ListQueues HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for name in ("recvfrom", "sendto", "sendmsg"):
        # Nobody would say again that a socket has input, or room.
        wrapper = case.file(f"{name}.sh", "#!/bin/sh\nexec strace -f -qq -o /dev/null "
                            f"-e inject={name}:error=EINTR:when=2+2 '{case.binary}' \"$@\"\n")
        os.chmod(wrapper, 0o755)
        with Server(wrapper, "--in-memory", "--threads", "1", "--listen", "127.0.0.1:0",
                    cwd=case.directory) as server:
            for _ in range(calls):
                check("200 OK" in exchange(server.url, request), name)
            # strace does not pass signals on.
            for child in children_of(server.process.pid):
                os.kill(child, signal.SIGTERM)
            server.process.wait(30)


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
        return [int(child) for child in children.read().split()]


def a_file_that_may_not_grow_is_reported(case):
    status, _, errors = run("/bin/sh", "-c", "ulimit -f 1000; exec \"$@\"", "sh", case.binary,
                            "serve", "--data", "data", "--threads", "1", "--listen", "127.0.0.1:0",
                            cwd=case.directory)
    check(status == 1 and "File too large" in errors, (status, errors))


def a_server_ends_though_nobody_reads_its_log(case):
    process = subprocess.Popen(
        [case.binary, "serve", "--in-memory", "--threads", "1", "--listen", "127.0.0.1:0",
         "--log-access"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        cwd=case.directory, env=clean_environment(None))
    try:
        url = next(match.group(1) for line in process.stdout if (match := READY.match(line.rstrip())))
        exchange(url, b"GET /?Action=ListQueues HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000, 1000)
        began = time.monotonic()
        process.terminate()
        check(process.wait(20) == 0, process.returncode)
        check(time.monotonic() - began < 10, "it took too long")
    finally:
        process.kill()
        process.wait()


def make_certificate(directory):
    names = [str(directory / name) for name in ("cert.pem", "key.pem")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1",
                    "-subj", "/CN=localhost", "-out", names[0], "-keyout", names[1]],
                   check=True, capture_output=True)
    return names


def tls_speaks_no_old_ciphers_and_tells_plain_http_so(case):
    certificate, key = make_certificate(case.directory)
    with case.serve_config(IN_MEMORY, "--tls-certificate", certificate, "--tls-key", key) as server:
        answer = exchange(server.url, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        check(answer.startswith("HTTP/1.1 400 ") and "https://" in answer, answer)
        body = b"x" * 200_000
        answer = exchange(server.url, b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000"
                                      b"\r\n\r\n" + body)
        check(answer.startswith("HTTP/1.1 400 "), answer)

        def speaks(ciphers):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            context.set_ciphers(ciphers + ":@SECLEVEL=0")
            address = urllib.parse.urlsplit(server.url)
            try:
                with socket.create_connection((address.hostname, address.port), 20) as plain:
                    with context.wrap_socket(plain):
                        return True
            except (ssl.SSLError, ConnectionError):
                return False

        for good in ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384",
                     "ECDHE-RSA-CHACHA20-POLY1305", "DEFAULT"):
            check(speaks(good), good)
        for bad in ("AES128-GCM-SHA256", "AES256-SHA", "AES128-SHA", "ECDHE-RSA-AES128-SHA",
                    "ECDHE-RSA-AES256-SHA384"):
            check(not speaks(bad), bad)
        Client(server.url).call("ListQueues")


def a_compressed_body_is_told_so(case):
    with case.serve_config(IN_MEMORY) as server:
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=20)
        connection.request("POST", "/", gzip.compress(b'{"QueueName":"q"}'), {
            "Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS.CreateQueue",
            "Content-Encoding": "gzip"})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        check(response.status == 415 and "Content-Encoding" in text, text)


def queue_urls_have_a_port_that_was_meant(case):
    with case.serve_config(IN_MEMORY) as server:
        port = server.url.rsplit(":", 1)[1]
        Client(server.url).call("CreateQueue", QueueName="q")
        ask = "/?Action=GetQueueUrl&QueueName=q HTTP/1."
        for request, expected in ((f"GET {ask}0\r\n\r\n", f"http://localhost:{port}/"),
                                  (f"GET {ask}1\r\nHost: localhost\r\n\r\n", "http://localhost/"),
                                  (f"GET {ask}1\r\nHost: localhost:1\r\n\r\n", "http://localhost:1/")):
            answer = exchange(server.url, request.encode())
            check(f"<QueueUrl>{expected}000000000000/q</QueueUrl>" in answer, (request, answer))


def an_address_has_its_share_of_connections(case):
    with case.serve_config(IN_MEMORY, "--limits-connections-per-address", "3") as server:
        address = urllib.parse.urlsplit(server.url)
        held = [socket.create_connection((address.hostname, address.port)) for _ in range(3)]
        for connection in held:  # Accepted, not only waiting to be.
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            check(connection.recv(100).startswith(b"HTTP/1.1 200"))
        answer = exchange(server.url, b"")
        check(answer.startswith("HTTP/1.1 503 ") and "from this address" in answer, answer)
        with socket.create_connection((address.hostname, address.port),
                                      source_address=("127.0.0.2", 0)) as other:
            other.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            check(other.recv(100).startswith(b"HTTP/1.1 200"))
        for connection in held:
            connection.close()
    status, _, errors = case.run("serve", "--in-memory", "--limits-memory", "1MiB")
    check(status == 2 and errors.startswith("stanchion: --limits-memory: is at least 16MiB"), errors)
