"""What clients saw, and whether a server that keeps its promises could have shown them that.

The ledger knows requests and answers only, with the times at which they began and ended. The server
acted somewhere in between, so a promise counts as broken only if no moment in between would do.
What is about to happen (a delete, a release) is noted before its request is sent, so that nothing
that the server may already have done is missing here, whatever the threads' order.
"""

import collections
import hashlib
import math
import threading
import time

# The server counts in milliseconds, and both clocks are adjusted now and then.
CLOCK_SLACK_SECONDS = 0.02
VIOLATIONS_SHOWN_MAX = 5

LOST = "an acknowledged send is delivered until it is deleted"
RETURNED = "a deleted message never comes back"
COPIED = "one send makes one message, retried FIFO sends included"
SHARED = "a message in flight is hidden until its timeout, restarts included"
EARLY = "a delayed message is not delivered before its time"
OVERTAKEN = "FIFO groups keep their order: nothing comes while an earlier one is in flight"
CHANGED = "bodies, attributes and ids are delivered as they were sent"
DEAD_LETTERS = "dead letters and redrives move exactly once, with all attributes"
COUNTS = "counts are zero once everything is deleted, also after another kill"
ALIVE = "the server starts again after every kill and answers as SQS does"
PROMISES = [LOST, RETURNED, COPIED, SHARED, EARLY, OVERTAKEN, CHANGED, DEAD_LETTERS, COUNTS, ALIVE]


def make_body(key, size):
    """A body that can be verified by itself: its key, its size, and bytes derived from them."""
    pattern = hashlib.sha256(key.encode()).hexdigest()
    return f"{key}|{size}|" + (pattern * (size // len(pattern) + 1))[:size]


def key_of(body):
    """The key in a body; None if it is not a body that make_body() made."""
    key, _, rest = body.partition("|")
    size = rest.partition("|")[0]
    return key if size.isdigit() and body == make_body(key, int(size)) else None


def attributes_of(key):
    """Message attributes derived from the key, as sent and as received."""
    if hashlib.sha256(key.encode()).digest()[0] % 3 != 0:
        return {}
    return {
        "key": {"DataType": "String", "StringValue": key},
        "size": {"DataType": "Number.int", "StringValue": str(len(key))},
        "bytes": {"DataType": "Binary", "BinaryValue": "AAECAwT/"},
    }


class Message:
    """One send and its outcome."""

    def __init__(self, key, visible_from, group, number):
        self.key = key
        self.visible_from = visible_from
        self.group = group
        self.number = number
        self.acknowledged = False
        self.refused = False
        self.message_id = None
        self.sequence = None
        self.deliveries = {}  # message id → those of that id
        self.sent_at = {}  # message id → SentTimestamp
        self.changes = {}  # Of visibility: delivery → from when until when it may have happened.
        self.deletes_under_way = 0
        self.delete_in_doubt = False
        self.deleted_at = None

    def may_be_deleted(self):
        return bool(self.deletes_under_way or self.delete_in_doubt or self.deleted_at)


class Delivery:
    """A message in one answer to a receive."""

    def __init__(self, message, queue, raw, began, ended, hidden_until):
        self.message = message
        self.queue = queue
        self.message_id = raw["MessageId"]
        self.receipt = raw["ReceiptHandle"]
        self.count = int(raw["Attributes"]["ApproximateReceiveCount"])
        self.began = began
        self.ended = ended
        self.hidden_until = hidden_until  # Nobody else may get the message before.
        self.valid_until = hidden_until  # Until then the receipt is good for a delete.


class Ledger:
    """All messages of one run. Any thread."""

    def __init__(self):
        self.lock = threading.Lock()
        self.messages = {}
        self.groups = collections.defaultdict(dict)  # group → number → message
        self.group_floor = collections.Counter()  # group → all below are deleted for sure
        self.in_flight = collections.defaultdict(list)  # group → deliveries of late
        self.sequences = {}  # group → the highest (number, sequence)
        self.dead_letter_queues = {}  # name → (ARN of the source, maxReceiveCount)
        self.sources = {}  # name of a source → maxReceiveCount
        self.redrives = 0
        self.stats = collections.Counter()
        self.violations = collections.defaultdict(list)

    def violated(self, promise, what):
        self.violations[promise].append(what)

    # Sends.

    def sending(self, key, delay=0, group=None, number=0):
        with self.lock:
            message = Message(key, time.time() + delay, group, number)
            self.messages[key] = message
            if group is not None:
                self.groups[group][number] = message
            return message

    def sent(self, message, answer):
        with self.lock:
            message.acknowledged = True
            message.message_id = answer["MessageId"]
            self.stats["sends"] += 1
            if message.group is not None:
                self._note_sequence(message, answer["SequenceNumber"])

    def send_in_doubt(self):
        with self.lock:
            self.stats["sends in doubt"] += 1

    def send_refused(self, message):
        with self.lock:
            message.refused = True

    def _note_sequence(self, message, sequence):
        if message.sequence not in (None, sequence):
            self.violated(COPIED, f"{message.key} has two sequence numbers")
        message.sequence = sequence
        number, highest = self.sequences.get(message.group, (-1, ""))
        if number < message.number:
            if highest >= sequence:
                self.violated(OVERTAKEN, f"{message.key}: its sequence number does not grow")
            self.sequences[message.group] = (message.number, sequence)

    # Receives.

    def received(self, queue, raw_messages, began, ended, visibility):
        """Audits one answer and returns its deliveries."""
        with self.lock:
            self.stats["receives"] += 1
            self.stats["messages received"] += len(raw_messages)
            deliveries = []
            for raw in raw_messages:
                message = self._identify(queue, raw)
                if message is None:
                    continue
                delivery = Delivery(message, queue, raw, began, ended, began + visibility)
                self._audit(delivery, raw, deliveries)
                message.deliveries.setdefault(delivery.message_id, []).append(delivery)
                deliveries.append(delivery)
            for delivery in deliveries:
                if delivery.message.group is not None:
                    self._note_in_flight(delivery)
            return deliveries

    def _identify(self, queue, raw):
        key = key_of(raw["Body"])
        message = self.messages.get(key)
        if message is None or raw["MD5OfBody"] != hashlib.md5(raw["Body"].encode()).hexdigest():
            self.violated(CHANGED, f"{queue} delivered a body that nobody sent: {raw['Body'][:80]}")
            return None
        if raw.get("MessageAttributes", {}) != attributes_of(key):
            self.violated(CHANGED, f"{key}: attributes are {raw.get('MessageAttributes')}")
        if message.refused:
            self.violated(CHANGED, f"{key} was delivered although its send was refused")
        return message

    def _audit(self, delivery, raw, same_answer):
        message = delivery.message
        if message.deleted_at is not None and delivery.began > message.deleted_at:
            late = delivery.began - message.deleted_at
            self.violated(RETURNED, f"{message.key} in {delivery.queue}, {late:.3f} s later")
        early = message.visible_from - delivery.ended
        if early > CLOCK_SLACK_SECONDS:
            self.violated(EARLY, f"{message.key}: {early:.3f} s early")
        self._audit_identity(delivery, raw)
        self._audit_visibility(delivery)
        self._audit_dead_letter(delivery, raw)
        if message.group is not None:
            self._note_sequence(message, raw["Attributes"]["SequenceNumber"])
            self._audit_group(delivery, same_answer)

    def _audit_identity(self, delivery, raw):
        message = delivery.message
        sent_at = int(raw["Attributes"]["SentTimestamp"])
        if message.sent_at.setdefault(delivery.message_id, sent_at) != sent_at:
            self.violated(CHANGED, f"{message.key}: SentTimestamp changed")
        if message.message_id in (None, delivery.message_id):
            message.message_id = delivery.message_id
        elif not (self.redrives and self._is_redriven(delivery.queue)):
            ids = f"{message.message_id} and {delivery.message_id}"
            self.violated(COPIED, f"{message.key} is there as {ids}")
        # A redrive makes a new message of the old one, which is gone for good from then on.
        for other_id, others in message.deliveries.items():
            newer = message.sent_at[other_id] > sent_at
            if newer and any(other.ended < delivery.began for other in others):
                self.violated(DEAD_LETTERS, f"{message.key} is still there after its redrive")

    def _is_redriven(self, queue):
        return queue in self.sources or queue in self.dead_letter_queues

    def _audit_visibility(self, delivery):
        """Receive counts say in which order the server handed the message out."""
        for other in delivery.message.deliveries.get(delivery.message_id, ()):
            if other.count == delivery.count:
                self.violated(SHARED, f"{other.message.key} has two receives number {other.count}")
                continue
            first, second = sorted((other, delivery), key=lambda d: d.count)
            early = first.hidden_until - second.ended
            if early > CLOCK_SLACK_SECONDS and not self._was_changed_by_others(first, second):
                self.violated(
                    SHARED,
                    f"{other.message.key}: receive {second.count} ({second.queue}) came"
                    f" {early:.3f} s before the timeout of receive {first.count} ({first.queue})",
                )

    def _was_changed_by_others(self, first, second):
        """On a standard queue the receipt of an earlier receive still changes the visibility, if its
        owner's call takes so long that somebody else has received the message meanwhile."""
        return first.message.group is None and any(
            by is not first and began < second.ended and first.began < ended
            for by, (began, ended) in first.message.changes.items()
        )

    def _audit_dead_letter(self, delivery, raw):
        message, queue = delivery.message, delivery.queue
        if queue in self.sources:
            if delivery.count > self.sources[queue]:
                self.violated(DEAD_LETTERS, f"{message.key} was received {delivery.count} times")
            for other in message.deliveries.get(delivery.message_id, ()):
                if other.queue != queue and other.ended < delivery.began:
                    self.violated(DEAD_LETTERS, f"{message.key} is in {queue} without a redrive")
        if queue in self.dead_letter_queues:
            source_arn, receives_max = self.dead_letter_queues[queue]
            if delivery.count <= receives_max:
                self.violated(DEAD_LETTERS, f"{message.key} moved at receive {delivery.count}")
            if raw["Attributes"].get("DeadLetterQueueSourceArn") != source_arn:
                self.violated(DEAD_LETTERS, f"{message.key} does not say where it comes from")
            if int(raw["Attributes"]["ApproximateFirstReceiveTimestamp"]) == 0:
                self.violated(DEAD_LETTERS, f"{message.key} lost the time of its first receive")
            self.stats["dead letters received"] += 1

    def _audit_group(self, delivery, same_answer):
        message = delivery.message
        group = self.groups[message.group]
        before = {d.message.number for d in same_answer if d.message.group == message.group}
        if before and max(before) > message.number:
            self.violated(OVERTAKEN, f"{message.key} is behind {max(before)} in one answer")
        floor = self.group_floor[message.group]
        while floor in group and group[floor].deleted_at is not None:
            floor += 1
        self.group_floor[message.group] = floor
        for number in range(floor, message.number):
            if number not in before and not group[number].may_be_deleted():
                self.violated(OVERTAKEN, f"{message.key} came before {number} was deleted")
                break
        for other in self.in_flight[message.group]:
            hidden_until = other.hidden_until - CLOCK_SLACK_SECONDS
            # Later ones may stay in flight while an earlier one is delivered again.
            if other.message.number > message.number:
                continue
            if other.ended < delivery.began and delivery.ended < hidden_until:
                self.violated(OVERTAKEN, f"{message.key} came with {other.message.key} in flight")

    def _note_in_flight(self, delivery):
        recent = self.in_flight[delivery.message.group]
        recent[:] = [d for d in recent if d.hidden_until > delivery.began - 60][-40:]
        recent.append(delivery)

    # Deletes and releases.

    def deleting(self, delivery):
        with self.lock:
            delivery.message.deletes_under_way += 1
            delivery.hidden_until = min(delivery.hidden_until, time.time())

    def deleted(self, delivery):
        now = time.time()
        with self.lock:
            message = delivery.message
            message.deletes_under_way -= 1
            if now < delivery.valid_until:
                message.deleted_at = message.deleted_at or now
                self.stats["deletes"] += 1
            else:
                # The receipt may have been stale by then, and a stale one need not delete.
                message.delete_in_doubt = True

    def delete_refused(self, delivery):
        with self.lock:
            delivery.message.deletes_under_way -= 1

    def delete_in_doubt(self, delivery):
        with self.lock:
            delivery.message.deletes_under_way -= 1
            delivery.message.delete_in_doubt = True
            self.stats["deletes in doubt"] += 1

    def changing_visibility(self, delivery, seconds):
        """Until the answer is there, both the old and the new timeout are possible."""
        with self.lock:
            now = time.time()
            delivery.message.changes[delivery] = (now, math.inf)
            change = (delivery.valid_until, now + seconds)
            delivery.hidden_until = delivery.valid_until = min(change)
            return change

    def changed_visibility(self, delivery, change):
        with self.lock:
            old, new = change
            if time.time() < old:
                delivery.hidden_until = delivery.valid_until = new
            self.stats["visibility changes"] += 1
            self._settle_change(delivery)

    def change_refused(self, delivery):
        with self.lock:
            self._settle_change(delivery)

    def _settle_change(self, delivery):
        began, _ = delivery.message.changes[delivery]
        delivery.message.changes[delivery] = (began, time.time())

    # The end.

    def audit_drained(self):
        """Everything was received and deleted: messages still missing are lost."""
        with self.lock:
            for message in self.messages.values():
                if message.acknowledged and not message.may_be_deleted():
                    seen = sum(len(d) for d in message.deliveries.values())
                    self.violated(LOST, f"{message.key} is gone, after {seen} receives")

    def report(self):
        """(passed, failed), printed one line per promise."""
        failed = 0
        for promise in PROMISES:
            broken = self.violations.get(promise, [])
            failed += bool(broken)
            print(f"{'FAIL' if broken else 'ok  '} {promise}")
            for what in broken[:VIOLATIONS_SHOWN_MAX]:
                print(f"       {what}")
            if len(broken) > VIOLATIONS_SHOWN_MAX:
                print(f"       … and {len(broken) - VIOLATIONS_SHOWN_MAX} more")
        return len(PROMISES) - failed, failed
