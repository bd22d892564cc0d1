"""Clients that note when their sends succeed, to tell how long a fault is felt."""

import threading
import time

from cluster import START_SECONDS_MAX, insist
from sqs import Client, Doubt, NotSent, Refused

SEND_SECONDS_MAX = 20


class Senders:
    """A thread for each queue, which sends one message after the other and notes when it could."""

    def __init__(self, find, queues, pause=0.005):
        self.find = find
        self.pause = pause
        self.ending = threading.Event()
        self.successes = [[] for _ in range(queues)]
        self.begun = threading.Barrier(queues + 1)
        self.threads = [threading.Thread(target=self.run, args=(i,), daemon=True)
                        for i in range(queues)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        self.begun.wait(2 * START_SECONDS_MAX)
        return self

    def __exit__(self, *_):
        self.ending.set()
        for thread in self.threads:
            thread.join()

    def run(self, index):
        client = Client(self.find)
        insist(client, "CreateQueue", QueueName=f"gap-{index}")
        self.begun.wait()
        while not self.ending.is_set():
            try:
                client.call("SendMessage", timeout=SEND_SECONDS_MAX, QueueUrl=f"gap-{index}",
                            MessageBody="x")
                self.successes[index].append(time.monotonic())
            except (NotSent, Doubt, Refused):
                pass
            self.ending.wait(self.pause)

    def longest_gap(self, since):
        """Of any queue, from a moment on."""
        worst = 0.0
        now = time.monotonic()
        for times in self.successes:
            seen = [since] + [at for at in times if at > since] + [now]
            worst = max([worst] + [b - a for a, b in zip(seen, seen[1:])])
        return worst
