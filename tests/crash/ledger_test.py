#!/usr/bin/env python3
"""The auditor itself: it notices each broken promise, and none where all were kept."""

import hashlib
import time
import unittest

import ledger
from ledger import Ledger, attributes_of, make_body


class LedgerTest(unittest.TestCase):
    def setUp(self):
        self.ledger = Ledger()
        self.now = time.time()

    def send(self, key, **options):
        message = self.ledger.sending(key, **options)
        sequence = f"{options.get('number', 0):020}"
        self.ledger.sent(message, {"MessageId": f"id of {key}", "SequenceNumber": sequence})
        return message

    def raw(self, key, count, message_id=None, number=0, **system):
        body = make_body(key, 100)
        return {
            "MessageId": message_id or f"id of {key}",
            "ReceiptHandle": f"{key} {count}",
            "Body": body,
            "MD5OfBody": hashlib.md5(body.encode()).hexdigest(),
            "MessageAttributes": attributes_of(key),
            "Attributes": {
                "ApproximateReceiveCount": str(count),
                "SentTimestamp": "1000",
                "ApproximateFirstReceiveTimestamp": "1000",
                "SequenceNumber": f"{number:020}",
                **system,
            },
        }

    def receive(self, *raw, at=0.0, queue="q", visibility=30):
        """A receive that began and ended within 10 ms, `at` seconds from now."""
        began = self.now + at
        return self.ledger.received(queue, raw, began, began + 0.01, visibility)

    def delete(self, delivery):
        self.ledger.deleting(delivery)
        self.ledger.deleted(delivery)

    def assert_broken(self, *promises):
        self.assertEqual(sorted(self.ledger.violations), sorted(promises))

    def test_send_receive_delete_breaks_nothing(self):
        self.send("a")
        self.delete(self.receive(self.raw("a", 1), at=1)[0])
        self.ledger.audit_drained()
        self.assert_broken()

    def test_an_acknowledged_message_that_never_comes_is_lost(self):
        self.send("a")
        self.ledger.sending("never acknowledged")
        self.ledger.audit_drained()
        self.assert_broken(ledger.LOST)

    def test_a_delete_in_doubt_may_have_happened_or_not(self):
        self.send("a")
        delivery = self.receive(self.raw("a", 1))[0]
        self.ledger.deleting(delivery)
        self.ledger.delete_in_doubt(delivery)
        self.receive(self.raw("a", 2), at=31)
        self.ledger.audit_drained()
        self.assert_broken()

    def test_a_deleted_message_must_not_come_back(self):
        self.send("a")
        self.delete(self.receive(self.raw("a", 1))[0])
        self.receive(self.raw("a", 2), at=40)
        self.assert_broken(ledger.RETURNED)

    def test_one_send_is_not_two_messages(self):
        self.send("a")
        self.receive(self.raw("a", 1))
        self.receive(self.raw("a", 1, message_id="another"), at=40)
        self.assert_broken(ledger.COPIED)

    def test_a_message_in_flight_is_nobody_elses(self):
        self.send("a")
        self.receive(self.raw("a", 1), visibility=30)
        self.receive(self.raw("a", 2), at=29)
        self.assert_broken(ledger.SHARED)

    def test_a_message_is_visible_after_its_timeout_or_its_release(self):
        self.send("a")
        self.receive(self.raw("a", 1), visibility=30)
        delivery = self.receive(self.raw("a", 2), at=30)[0]
        change = self.ledger.changing_visibility(delivery, 0)
        self.ledger.changed_visibility(delivery, change)
        self.receive(self.raw("a", 3), at=31)
        self.assert_broken()

    def test_a_release_that_took_long_may_concern_the_next_receive(self):
        self.send("a")
        slow = self.receive(self.raw("a", 1), visibility=1)[0]
        self.ledger.changing_visibility(slow, 0)
        self.receive(self.raw("a", 2), at=2, visibility=30)
        self.receive(self.raw("a", 3), at=3)
        self.assert_broken()
        self.ledger.change_refused(slow)
        self.receive(self.raw("a", 4), at=4)
        self.assert_broken(ledger.SHARED)

    def test_receipts_say_who_was_first_whatever_the_order_of_the_notes(self):
        self.send("a")
        self.receive(self.raw("a", 2), at=31)
        self.receive(self.raw("a", 1), at=0)
        self.assert_broken()
        self.receive(self.raw("a", 3), at=32)
        self.assert_broken(ledger.SHARED)

    def test_a_delayed_message_is_not_early(self):
        self.send("a", delay=5)
        self.receive(self.raw("a", 1), at=3)
        self.assert_broken(ledger.EARLY)

    def test_a_group_is_not_overtaken(self):
        for number in range(3):
            self.send(f"g/{number}", group="g", number=number)
        first = self.receive(self.raw("g/0", 1, number=0))[0]
        self.delete(first)
        self.receive(self.raw("g/2", 1, number=2), at=1)
        self.assert_broken(ledger.OVERTAKEN)

    def test_a_group_in_order_is_fine(self):
        for number in range(3):
            self.send(f"g/{number}", group="g", number=number)
        raw = [self.raw(f"g/{number}", 1, number=number) for number in range(3)]
        for delivery in self.receive(*raw, at=1):
            self.delete(delivery)
        self.assert_broken()

    def receive_pair_and_release(self, released):
        for number in range(2):
            self.send(f"g/{number}", group="g", number=number)
        raw = [self.raw(f"g/{number}", 1, number=number) for number in range(2)]
        delivery = self.receive(*raw, at=0)[released]
        self.ledger.changed_visibility(delivery, self.ledger.changing_visibility(delivery, 0))
        self.receive(self.raw(f"g/{released}", 2, number=released), at=5)

    def test_a_message_waits_for_earlier_ones_in_flight(self):
        self.receive_pair_and_release(1)
        self.assert_broken(ledger.OVERTAKEN)

    def test_a_message_does_not_wait_for_later_ones_in_flight(self):
        self.receive_pair_and_release(0)
        self.assert_broken()

    def test_changed_bytes_are_seen(self):
        self.send("a")
        raw = self.raw("a", 1)
        raw["Body"] = raw["Body"][:-1] + "!"
        self.receive(raw)
        self.assert_broken(ledger.CHANGED)

    def test_a_refused_send_must_not_be_delivered(self):
        self.ledger.send_refused(self.ledger.sending("a"))
        self.receive(self.raw("a", 1))
        self.assert_broken(ledger.CHANGED)

    def make_pair(self):
        self.ledger.sources["work"] = 2
        self.ledger.dead_letter_queues["dead"] = ("arn of work", 2)
        self.send("a")
        self.receive(self.raw("a", 1), queue="work")
        self.receive(self.raw("a", 2), at=31, queue="work")

    def dead(self, count, source="arn of work"):
        return self.raw("a", count, DeadLetterQueueSourceArn=source)

    def test_a_dead_letter_moves_once(self):
        self.make_pair()
        self.receive(self.dead(3), at=62, queue="dead")
        self.assert_broken()

    def test_a_dead_letter_is_not_received_too_often(self):
        self.make_pair()
        self.receive(self.raw("a", 3), at=62, queue="work")
        self.assert_broken(ledger.DEAD_LETTERS)

    def test_a_dead_letter_says_where_it_comes_from(self):
        self.make_pair()
        self.receive(self.dead(3, "somewhere"), at=62, queue="dead")
        self.assert_broken(ledger.DEAD_LETTERS)

    def test_a_redriven_message_is_not_the_old_one_any_more(self):
        self.make_pair()
        self.ledger.redrives = 1
        self.receive(self.dead(3), at=62, queue="dead")
        new = self.raw("a", 1, message_id="new", SentTimestamp="2000")
        self.receive(new, at=93, queue="work")
        self.assert_broken()
        self.receive(self.dead(4), at=124, queue="dead")
        self.assert_broken(ledger.DEAD_LETTERS)


if __name__ == "__main__":
    unittest.main()
