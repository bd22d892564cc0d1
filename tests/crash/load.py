"""Clients that send, receive, delete and change visibility, and write down what they saw.

Queues: one standard queue, one FIFO queue with several groups, and pairs of a source and its
dead-letter queue, of which at least one pair should live in two different shards.
"""

import json
import math
import random
import threading
import time

from ledger import ALIVE, DEAD_LETTERS, attributes_of, make_body
from sqs import Client, Doubt, NoAnswer, NotSent, Refused

ACCOUNT = "000000000000"
STANDARD = "plain"
FIFO = "ordered.fifo"
PAIRS = [("work-a", "dead-a"), ("work-b", "dead-b"), ("work-c", "dead-c")]
RECEIVES_MAX = 2
GROUPS_PER_PRODUCER = 3
FIFO_PRODUCERS = 2
DRAIN_VISIBILITY_SECONDS = 60
HOLD_SECONDS_MAX = 120
# Without progress. A receive whose answer was lost hides its messages, and in a fleet it may take a
# minute until another attempt is answered.
DRAIN_SECONDS_MAX = 2 * DRAIN_VISIBILITY_SECONDS + 60

# Errors that a client may get if it was too slow, or another client was faster.
EXPECTED_REFUSALS = {
    "DeleteMessage": {"ReceiptHandleIsInvalid", "InvalidParameterValue"},
    "DeleteMessageBatch": {"ReceiptHandleIsInvalid", "InvalidParameterValue"},
    "ChangeMessageVisibility": {"ReceiptHandleIsInvalid", "InvalidParameterValue"},
    "StartMessageMoveTask": {"InvalidParameterValue"},
}


def arn(queue):
    return f"arn:aws:sqs:us-east-1:{ACCOUNT}:{queue}"


def all_queues():
    return [STANDARD, FIFO] + [queue for pair in PAIRS for queue in pair]


class Load:
    """The clients of one run. They go on until stop(), whatever happens to the server."""

    def __init__(self, server, ledger, seed, client=Client):
        self.server = server
        self.make_client = client
        self.ledger = ledger
        self.seed = seed
        self.stopping = threading.Event()
        self.going = threading.Event()
        self.going.set()
        self.threads = []
        self.workers = []

    def create_queues(self):
        client = self.make_client(self.server.find)
        client.call("CreateQueue", QueueName=STANDARD)
        client.call("CreateQueue", QueueName=FIFO, Attributes={"FifoQueue": "true"})
        for source, dead in PAIRS:
            client.call("CreateQueue", QueueName=dead)
            policy = {"deadLetterTargetArn": arn(dead), "maxReceiveCount": RECEIVES_MAX}
            client.call(
                "CreateQueue", QueueName=source, Attributes={"RedrivePolicy": json.dumps(policy)}
            )
            self.ledger.sources[source] = RECEIVES_MAX
            self.ledger.dead_letter_queues[dead] = (arn(source), RECEIVES_MAX)
        client.close()

    def start(self):
        workers = [FifoProducer(self, i) for i in range(FIFO_PRODUCERS)]
        workers += [StandardProducer(self, f"plain-{i}", [STANDARD]) for i in range(2)]
        workers += [StandardProducer(self, "work", [source for source, _ in PAIRS])]
        workers += [Consumer(self, f"plain-{i}", [STANDARD], keep=0.25) for i in range(2)]
        workers += [Consumer(self, f"fifo-{i}", [FIFO], keep=0.3) for i in range(2)]
        workers += [Consumer(self, "work", [source for source, _ in PAIRS], keep=0.7)]
        workers += [DeadLetterKeeper(self)]
        self.workers = workers
        for worker in workers:
            thread = threading.Thread(target=worker.run, name=worker.name, daemon=True)
            self.threads.append(thread)
            thread.start()

    def hold(self):
        """Returns when every client has ended what it was doing; go_on() lets them go on."""
        self.going.clear()
        for worker in self.workers:
            if not worker.held.wait(HOLD_SECONDS_MAX):
                raise RuntimeError(f"the client {worker.name} does not end what it is doing")

    def go_on(self):
        for worker in self.workers:
            worker.held.clear()
        self.going.set()

    def stop(self):
        self.stopping.set()
        self.going.set()
        for thread in self.threads:
            thread.join()

    def find(self):
        """The server's address; None once the load is to stop."""
        while not self.stopping.is_set():
            address = self.server.find(0.1)
            if address is not None:
                return address
        return None


class Worker:
    """A thread with its own connection and random numbers."""

    def __init__(self, load, name):
        self.load = load
        self.ledger = load.ledger
        self.name = name
        self.random = random.Random(f"{load.seed} {type(self).__name__} {name}")
        self.client = load.make_client(load.find)
        self.held = threading.Event()

    def run(self):
        while not self.load.stopping.is_set():
            if not self.load.going.is_set():
                self.held.set()
                self.load.going.wait()
                continue
            try:
                self.step()
            except NotSent:
                pass
            except NoAnswer as error:
                self.ledger.violated(ALIVE, str(error))
            except Doubt:
                self.ledger.stats["other calls in doubt"] += 1
            except Exception as error:  # The audit would be blind if a client simply disappeared.
                self.ledger.violated(ALIVE, f"{self.name} gave up: {error!r}")
                self.held.set()
                raise
        self.client.close()

    def call(self, action, **parameters):
        try:
            return self.client.call(action, **parameters)
        except Refused as error:
            code = error.code.rpartition("#")[2].removesuffix("Exception")
            if code not in EXPECTED_REFUSALS.get(action, ()):
                self.ledger.violated(ALIVE, f"{action} was refused: {error}")
            raise

    def size(self):
        return self.random.choice([0, 50, 50, 300, 3000, 40_000])


class StandardProducer(Worker):
    """Sends one by one and in batches; a send in doubt is not repeated."""

    def __init__(self, load, name, queues):
        super().__init__(load, name)
        self.queues = queues
        self.number = 0

    def entry(self, queue):
        self.number += 1
        key = f"{queue}/{self.name}/{self.number}"
        delay = 1 if self.random.random() < 0.05 else 0
        parameters = {"MessageBody": make_body(key, self.size()), "DelaySeconds": delay}
        if attributes := attributes_of(key):
            parameters["MessageAttributes"] = attributes
        return self.ledger.sending(key, delay), parameters

    def step(self):
        queue = self.random.choice(self.queues)
        if self.random.random() < 0.5:
            entries = [self.entry(queue) for _ in range(self.random.randint(2, 10))]
            self.send(entries, "SendMessageBatch", QueueUrl=queue, Entries=[
                {"Id": str(i), **parameters} for i, (_, parameters) in enumerate(entries)
            ])
        else:
            entry = self.entry(queue)
            self.send([entry], "SendMessage", QueueUrl=queue, **entry[1])

    def send(self, entries, action, **parameters):
        messages = [message for message, _ in entries]
        try:
            answer = self.call(action, **parameters)
        except Doubt:
            for _ in messages:
                self.ledger.send_in_doubt()
            raise
        except (Refused, NotSent):
            for message in messages:
                self.ledger.send_refused(message)
            return
        for result in answer.get("Successful", [{"Id": "0", **answer}]):
            self.ledger.sent(messages[int(result["Id"])], result)
        for result in answer.get("Failed", []):
            self.ledger.violated(ALIVE, f"an entry of a batch was refused: {result}")


class FifoProducer(Worker):
    """Sends to its own groups, one message after the other, each until it is acknowledged."""

    def __init__(self, load, index):
        super().__init__(load, f"fifo-{index}")
        self.numbers = {f"g{index}-{i}": 0 for i in range(GROUPS_PER_PRODUCER)}

    def step(self):
        group = self.random.choice(list(self.numbers))
        number = self.numbers[group]
        self.numbers[group] += 1
        key = f"{group}/{number}"
        parameters = {
            "QueueUrl": FIFO,
            "MessageBody": make_body(key, self.size()),
            "MessageGroupId": group,
            "MessageDeduplicationId": key,
        }
        if attributes := attributes_of(key):
            parameters["MessageAttributes"] = attributes
        message = self.ledger.sending(key, 0, group, number)
        while True:
            try:
                self.ledger.sent(message, self.call("SendMessage", **parameters))
                if self.random.random() < 0.05:
                    self.ledger.sent(message, self.call("SendMessage", **parameters))
                return
            except Doubt:
                self.ledger.send_in_doubt()
            except NotSent:
                if self.load.stopping.is_set():
                    raise


class Consumer(Worker):
    """Receives and deletes; with probability `keep` it lets a message lapse or releases it."""

    def __init__(self, load, name, queues, keep):
        super().__init__(load, name)
        self.queues = queues
        self.keep = keep
        self.attempt = None  # FIFO: the receive to repeat, because its outcome is unknown.

    def step(self):
        queue = self.random.choice(self.queues)
        for group in self.split(self.receive(queue)):
            self.handle(queue, group)

    def receive(self, queue):
        visibility = self.random.choice([1, 2, 3])
        parameters = {
            "QueueUrl": queue,
            "MaxNumberOfMessages": self.random.randint(1, 10),
            "VisibilityTimeout": visibility,
            "WaitTimeSeconds": self.random.choice([0, 1]),
            "AttributeNames": ["All"],
            "MessageAttributeNames": ["All"],
        }
        if queue == FIFO:
            parameters = self.attempt or {
                **parameters,
                "ReceiveRequestAttemptId": f"{self.name}-{self.random.random()}",
            }
            visibility = parameters["VisibilityTimeout"]
            self.attempt = parameters
        began = time.time()
        answer = self.call("ReceiveMessage", **parameters)
        self.attempt = None
        return self.ledger.received(
            queue, answer.get("Messages", []), began, time.time(), visibility
        )

    @staticmethod
    def split(deliveries):
        """One list per FIFO group; all together on a standard queue."""
        groups = {}
        for delivery in deliveries:
            groups.setdefault(delivery.message.group, []).append(delivery)
        return groups.values()

    def handle(self, queue, deliveries):
        kept = []
        if self.random.random() < self.keep:
            # Only ever the end of a FIFO group is kept: deleting a later message first would give
            # up the order.
            count = self.random.randint(1, len(deliveries))
            deliveries, kept = deliveries[:-count], deliveries[-count:]
        if deliveries and not self.delete(queue, deliveries):
            return
        for delivery in kept:
            if self.random.random() < 0.6:
                self.change_visibility(queue, delivery)

    def delete(self, queue, deliveries):
        """True if all of them were certainly deleted."""
        if len(deliveries) > 1 and self.random.random() < 0.7:
            return self.try_delete(deliveries, "DeleteMessageBatch", QueueUrl=queue, Entries=[
                {"Id": str(i), "ReceiptHandle": d.receipt} for i, d in enumerate(deliveries)
            ])
        for delivery in deliveries:
            if not self.try_delete(
                [delivery], "DeleteMessage", QueueUrl=queue, ReceiptHandle=delivery.receipt
            ):
                return False
        return True

    def try_delete(self, deliveries, action, **parameters):
        for delivery in deliveries:
            self.ledger.deleting(delivery)
        again = self.random.random() < 0.5
        while True:
            try:
                answer = self.call(action, **parameters)
                break
            except Doubt:
                if again:
                    continue
                for delivery in deliveries:
                    self.ledger.delete_in_doubt(delivery)
                return False
            except NotSent:
                # A message that was in doubt before stays so.
                for delivery in deliveries:
                    self.ledger.delete_in_doubt(delivery)
                raise
            except Refused:
                for delivery in deliveries:
                    self.ledger.delete_refused(delivery)
                return False
        failed = {int(entry["Id"]) for entry in answer.get("Failed", [])}
        for i, delivery in enumerate(deliveries):
            if i in failed:
                self.ledger.delete_refused(delivery)
            else:
                self.ledger.deleted(delivery)
        return not failed

    def change_visibility(self, queue, delivery):
        seconds = self.random.choice([0, 0, 0, 2])
        change = self.ledger.changing_visibility(delivery, seconds)
        try:
            self.call(
                "ChangeMessageVisibility",
                QueueUrl=queue,
                ReceiptHandle=delivery.receipt,
                VisibilityTimeout=seconds,
            )
        except Refused:
            self.ledger.change_refused(delivery)
            return
        self.ledger.changed_visibility(delivery, change)


class DeadLetterKeeper(Consumer):
    """Deletes some dead letters and now and then moves the rest back to where they came from."""

    def __init__(self, load):
        super().__init__(load, "dead", [dead for _, dead in PAIRS], keep=0.8)

    def step(self):
        if self.random.random() < 0.1:
            self.redrive(self.random.choice(self.queues))
        else:
            super().step()
        self.load.stopping.wait(0.05)

    def redrive(self, queue):
        parameters = {"SourceArn": arn(queue)}
        if self.random.random() < 0.5:
            parameters["MaxNumberOfMessagesPerSecond"] = 100
        self.ledger.redrives += 1
        try:
            self.call("StartMessageMoveTask", **parameters)
            self.ledger.stats["move tasks"] += 1
        except Refused:
            pass


def counts_of(client, queue):
    names = ["", "NotVisible", "Delayed"]
    answer = client.call("GetQueueAttributes", QueueUrl=queue, AttributeNames=["All"])
    return [int(answer["Attributes"][f"ApproximateNumberOfMessages{name}"]) for name in names]


def wait_for_move_tasks(server, ledger, make_client=Client):
    client = make_client(server.find)
    deadline = time.time() + DRAIN_SECONDS_MAX
    for _, dead in PAIRS:
        while True:
            tasks = client.call("ListMessageMoveTasks", SourceArn=arn(dead), MaxResults=10)
            if not any(task["Status"] == "RUNNING" for task in tasks.get("Results", [])):
                break
            if time.time() > deadline:
                ledger.violated(DEAD_LETTERS, f"the move task of {dead} does not end: {tasks}")
                break
            time.sleep(0.1)
    client.close()


def drain(server, ledger, queues, make_client=Client):
    """Receives and deletes until nothing is left. False if it does not go on any more."""
    client = make_client(server.find)
    left, fewest, deadline = list(queues), math.inf, 0
    while left:
        for queue in left:
            drain_what_is_visible(client, ledger, queue)
        counts = {queue: sum(counts_of(client, queue)) for queue in queues}
        left = [queue for queue in queues if counts[queue]]
        if sum(counts.values()) < fewest:
            fewest = sum(counts.values())
            deadline = time.time() + DRAIN_SECONDS_MAX
        if left and time.time() > deadline:
            return False
        if left:
            time.sleep(0.05)
    client.close()
    return True


def drain_what_is_visible(client, ledger, queue):
    visibility = DRAIN_VISIBILITY_SECONDS
    while True:
        began = time.time()
        answer = client.call(
            "ReceiveMessage",
            QueueUrl=queue,
            MaxNumberOfMessages=10,
            VisibilityTimeout=visibility,
            AttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        raw = answer.get("Messages", [])
        deliveries = ledger.received(queue, raw, began, time.time(), visibility)
        if not raw:
            return
        for delivery in deliveries:
            ledger.deleting(delivery)
        client.call("DeleteMessageBatch", QueueUrl=queue, Entries=[
            {"Id": str(i), "ReceiptHandle": d.receipt} for i, d in enumerate(deliveries)
        ])
        for delivery in deliveries:
            ledger.deleted(delivery)
