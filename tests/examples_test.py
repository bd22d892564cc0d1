#!/usr/bin/env python3
"""Runs the examples of docs/guide/processing-messages-safely.md against the real server: orders that
are fine, one that is sent twice, one that takes longer than its visibility timeout, one that is poison.

    examples_test.py --binary build/release/stanchion

tests/client/installed_test.py does the same with the example in C++, which needs the package. The
last line says how many tests passed and failed.
"""
import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
sys.path.insert(0, str(ROOT / "tests/cli"))

from case import Case, check, run_tests, tests_of  # noqa: E402
from server import Server, clean_environment  # noqa: E402
from signed_client import Client  # noqa: E402

SECONDS_MAX = 120
ORDERS = [f"order-{i}" for i in range(12)] + ["slow-1"]
COUNTS = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]


class Shop:
    """A server's queue with orders, and what a worker made of them."""

    def __init__(self, server, binary, directory, name):
        self.client = Client(server.url)
        self.store = pathlib.Path(directory) / name
        self.store.mkdir()
        self.environment = clean_environment({
            "AWS_ENDPOINT_URL": server.url, "AWS_DEFAULT_REGION": "us-east-1", "AWS_PAGER": "",
            "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "thing",
            "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
            "NO_PROXY": "*", "STORE": str(self.store), "PYTHONDONTWRITEBYTECODE": "1",
            "PATH": f"{pathlib.Path(binary).parent}:{os.environ['PATH']}"})
        self.url = subprocess.run([EXAMPLES / "shell/setup.sh", name], env=self.environment,
                                  check=True, text=True, stdout=subprocess.PIPE,
                                  timeout=SECONDS_MAX).stdout.strip()
        self.environment["QUEUE_URL"] = self.url
        for order in [*ORDERS, "order-3", "bad"]:
            self.client.call("SendMessage", QueueUrl=self.url, MessageBody=order)

    def left(self, url):
        counts = self.client.call("GetQueueAttributes", QueueUrl=url, AttributeNames=COUNTS)
        return [int(counts["Attributes"][name]) for name in COUNTS]

    def is_done(self):
        return self.left(self.url) == [0, 0] and self.left(self.url + "-dead") == [1, 0]

    def serve(self, command, cwd=None):
        """Runs the worker until every order was dealt with, and audits what it did."""
        # Apart, since a complaint may end up in the middle of a line that is looked for.
        complaints = self.store.with_suffix(".stderr")
        with complaints.open("w") as stderr:
            worker = subprocess.Popen(command, env=self.environment, cwd=cwd, text=True,
                                      stdout=subprocess.PIPE, stderr=stderr)
        try:
            deadline = time.monotonic() + SECONDS_MAX
            while not self.is_done() and worker.poll() is None and time.monotonic() < deadline:
                time.sleep(0.1)
            worker.send_signal(signal.SIGTERM)
            said = worker.communicate(timeout=SECONDS_MAX)[0]
        finally:
            worker.kill()
            worker.wait()
        tries = re.findall(r"^handling (\S+), delivery (\d+)$", said, re.MULTILINE)
        said += complaints.read_text()
        check(worker.returncode == 0, (worker.returncode, said))
        check(self.is_done(), (self.left(self.url), said))
        check(sorted(os.listdir(self.store)) == sorted(ORDERS), (os.listdir(self.store), said))
        check(tries.count(("slow-1", "1")) == 1 and ("slow-1", "2") not in tries, said)
        check([count for order, count in tries if order == "bad"] == ["1", "2"], said)


def workers_in_python_javascript_and_shell_store_every_order_once(case):
    (case.directory / "orders.mjs").write_bytes((EXAMPLES / "javascript/orders.mjs").read_bytes())
    (case.directory / "node_modules").symlink_to(ROOT / "tests/clients/js/node_modules")
    commands = {"python": ["/usr/bin/python3", EXAMPLES / "python/orders.py"],
                "javascript": ["node", "orders.mjs"],
                "shell": [EXAMPLES / "shell/orders.sh"]}
    with Server(case.binary, "--in-memory", "--listen", "127.0.0.1:0") as server, \
            concurrent.futures.ThreadPoolExecutor() as pool:
        shops = [pool.submit(lambda name=name, command=command: Shop(
            server, case.binary, case.directory, name).serve(command, cwd=case.directory))
            for name, command in commands.items()]
        for shop in shops:
            shop.result()


if __name__ == "__main__":
    sys.exit(run_tests(tests_of(globals()), __doc__, Case))
