"""Celery and kombu, with real workers, against the server at STANCHION_ENDPOINT."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import uuid

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import boto3
import kombu

import broker
from support import suite
from support.unicode import TEXTS

ENDPOINT = os.environ["STANCHION_ENDPOINT"]
sqs = boto3.client("sqs", endpoint_url=ENDPOINT)

# Runs the calls of one test in a process that has the same configuration as its worker.
CALLER = """
import json, sys
import celery_tasks as tasks
for name, arguments in json.load(sys.stdin):
    result = getattr(tasks, name).delay(*arguments)
    try:
        print(json.dumps(["returned", result.get(timeout=120)]))
    except Exception as error:
        print(json.dumps(["raised", type(error).__name__, str(error)]))
"""


class Application:
    """One configuration of the application and a worker that runs its tasks."""

    def __init__(self, queue, predefined):
        self._results = tempfile.TemporaryDirectory(prefix="stanchion-celery-")
        self._environment = {**os.environ, "CELERY_QUEUE": queue, "PYTHONPATH": str(HERE),
                             "CELERY_PREDEFINED": json.dumps(predefined),
                             "CELERY_RESULTS": self._results.name}
        self._log = open(pathlib.Path(self._results.name) / "worker.log", "w+")
        self._worker = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", "celery_tasks", "worker", "--pool", "solo",
             "--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "info"],
            cwd=self._results.name, env=self._environment, stdout=self._log,
            stderr=subprocess.STDOUT)

    def call(self, *calls):
        done = subprocess.run([sys.executable, "-c", CALLER], input=json.dumps(calls),
                              cwd=self._results.name, env=self._environment, text=True,
                              capture_output=True)
        if done.returncode:
            raise AssertionError(f"{done.stderr}\n{self.log()}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def log(self):
        return pathlib.Path(self._log.name).read_text()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self._worker.terminate()
        self._worker.wait()
        self._log.close()
        self._results.cleanup()


def left_in(url):
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    return {name: int(found[name]) for name in names}


class Celery(unittest.TestCase):
    maxDiff = None

    def check_tasks(self, application):
        """Round trips of every kind: results, texts, retries through the queue, failures."""
        texts = list(TEXTS.values())
        answers = application.call(("add", [2, 3]), *(("echo", [text]) for text in texts),
                                   ("succeed_at_last", []), ("fail", []))
        self.assertEqual(answers, [["returned", 5], *(["returned", text] for text in texts),
                                   ["returned", 2], ["raised", "ValueError", "as asked"]],
                         application.log())

    def check_drained(self, url):
        """Each task was acknowledged: nothing waits, nothing is in flight."""
        for _ in range(60):
            if not any(left_in(url).values()):
                return
            # The last acknowledgement may be under way; a long poll elsewhere passes the time.
            sqs.receive_message(QueueUrl=self.idle, WaitTimeSeconds=1)
        self.fail(left_in(url))

    def setUp(self):
        self.idle = sqs.create_queue(QueueName=f"idle-{uuid.uuid4().hex[:8]}")["QueueUrl"]

    def test_a_worker_on_a_queue_that_it_creates(self):
        name = f"celery-{uuid.uuid4().hex[:8]}"
        with Application(name, {}) as application:
            self.check_tasks(application)
            url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
            found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])
            self.assertEqual(found["Attributes"]["VisibilityTimeout"], "600")
            self.check_drained(url)

    def test_a_worker_on_a_predefined_fifo_queue(self):
        name = f"celery-{uuid.uuid4().hex[:8]}.fifo"
        url = sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true"})["QueueUrl"]
        with Application(name, {name: {"url": url}}) as application:
            self.check_tasks(application)
            self.check_drained(url)


class Kombu(unittest.TestCase):
    def setUp(self):
        self.connection = kombu.Connection(broker.URL, transport_options=broker.OPTIONS)
        self.addCleanup(self.connection.release)

    def test_a_simple_queue(self):
        # kombu replaces characters that SQS does not allow in names.
        name = f"kombu.{uuid.uuid4().hex[:8]}"
        queue = self.connection.SimpleQueue(name)
        for text in TEXTS.values():
            queue.put({"text": text})
        self.assertEqual(queue.qsize(), len(TEXTS))
        found = []
        for _ in TEXTS:
            message = queue.get(timeout=60)
            found.append(message.payload["text"])
            message.ack()
        self.assertEqual(sorted(found), sorted(TEXTS.values()))
        url = sqs.get_queue_url(QueueName=name.replace(".", "-"))["QueueUrl"]
        self.assertEqual(set(left_in(url).values()), {0})

    def test_requeued_messages_come_again(self):
        queue = self.connection.SimpleQueue(f"kombu-{uuid.uuid4().hex[:8]}")
        queue.put("again")
        queue.get(timeout=60).requeue()
        message = queue.get(timeout=60)
        self.assertEqual(message.payload, "again")
        message.ack()

    def test_clearing_a_queue(self):
        queue = self.connection.SimpleQueue(f"kombu-{uuid.uuid4().hex[:8]}")
        for i in range(3):
            queue.put(i)
        queue.clear()
        self.assertEqual(queue.qsize(), 0)


if __name__ == "__main__":
    sys.exit(suite.run([sys.modules["__main__"]]))
