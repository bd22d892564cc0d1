#!/usr/bin/python3
"""Takes orders from a queue and stores each of them once, as docs/guide/processing-messages-safely.md
describes. Ends on SIGTERM.

    QUEUE_URL=http://127.0.0.1:9324/000000000000/orders STORE=/var/lib/orders ./orders.py

Needs boto3. Endpoint, region and credentials come from the queue's URL and the environment.
"""
import os
import pathlib
import random
import signal
import threading
import time
import urllib.parse

import boto3

QUEUE_URL, STORE = os.environ["QUEUE_URL"], pathlib.Path(os.environ["STORE"])
VISIBILITY = 10  # Seconds until a message comes again after a crash. Jobs may take longer.

url = urllib.parse.urlsplit(QUEUE_URL)
sqs = boto3.client("sqs", endpoint_url=f"{url.scheme}://{url.netloc}")
state = {"stopping": False, "waiting": False}


def stop(*_):
    state["stopping"] = True
    if state["waiting"]:
        # What this poll may have received comes again when its visibility ends.
        raise SystemExit(0)


def receive():
    if state["stopping"]:
        return []
    state["waiting"] = True
    answer = sqs.receive_message(QueueUrl=QUEUE_URL, MaxNumberOfMessages=10, WaitTimeSeconds=20,
                                 VisibilityTimeout=VISIBILITY,
                                 AttributeNames=["ApproximateReceiveCount"])
    state["waiting"] = False
    return answer.get("Messages", [])


def change_visibility(messages, seconds):
    if messages:
        sqs.change_message_visibility_batch(QueueUrl=QUEUE_URL, Entries=[
            {"Id": str(i), "ReceiptHandle": message["ReceiptHandle"], "VisibilityTimeout": seconds}
            for i, message in enumerate(messages)])


class Hold:
    """Keeps messages from being delivered to others while they are in hand."""

    def __init__(self, messages):
        self.messages, self.lock, self.ended = list(messages), threading.Lock(), threading.Event()
        self.thread = threading.Thread(target=self.extend, daemon=True)
        self.thread.start()

    def extend(self):
        while not self.ended.wait(VISIBILITY / 2):
            with self.lock:
                change_visibility(self.messages, VISIBILITY)

    def release(self, message):
        with self.lock:
            self.messages.remove(message)

    def end(self):
        self.ended.set()
        self.thread.join()


def store(order, message_id):
    """Idempotent: the name of the file is the order, and a file that is there is complete."""
    if not (STORE / order).exists():
        unfinished = STORE / f".{message_id}"
        unfinished.write_text(order + "\n")
        unfinished.rename(STORE / order)


def handle(message, count):
    order = message["Body"]
    print(f"handling {order}, delivery {count}", flush=True)
    if order.startswith("bad"):
        raise ValueError("that is no order")
    if order.startswith("slow"):
        time.sleep(15)
    store(order, message["MessageId"])


def work(message, hold):
    count = int(message["Attributes"]["ApproximateReceiveCount"])
    try:
        handle(message, count)
    except Exception as error:  # noqa: BLE001: whatever it is, the message is tried again
        print(f"{message['MessageId']}: {error}", flush=True)
        hold.release(message)
        # A random time that grows, so that what fails together does not come back together.
        change_visibility([message], round(random.uniform(0, min(900, 2 ** (count - 1)))))
        return
    hold.release(message)
    # Only now that the effect is stored.
    sqs.delete_message(QueueUrl=QUEUE_URL, ReceiptHandle=message["ReceiptHandle"])


def main():
    signal.signal(signal.SIGTERM, stop)
    while not state["stopping"]:
        messages = receive()
        hold = Hold(messages)
        for message in messages:
            if not state["stopping"]:
                work(message, hold)
        left = hold.messages
        hold.end()
        # After a stop others need not wait for what has not begun.
        change_visibility(left, 0)


if __name__ == "__main__":
    main()
