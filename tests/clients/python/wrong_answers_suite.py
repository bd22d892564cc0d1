"""The tests of boto3 notice wrong answers: each falsehood of falsehoods.json makes one fail.

With this, a test that calls an action but does not look at what it answers is found out.
"""
import json
import pathlib
import sys
import unittest

import kit
from support import suite
from support.wrong_answers import Proxy

import boto3_suite

FALSEHOODS = json.loads((pathlib.Path(suite.__file__).parent / "falsehoods.json").read_text())

# Which tests check the answers of an action, beginning with those that notice most.
WITNESSES = {
    "CreateQueue": ["found_by_its_name"],
    "GetQueueUrl": ["found_by_its_name"],
    "ListQueues": ["pages_are_complete"],
    "ListDeadLetterSourceQueues": ["dead_letter_sources_come"],
    "GetQueueAttributes": ["documented_defaults"],
    "ListQueueTags": ["tags_are_added"],
    "SendMessage": ["every_type_comes_back", "a_message_is_sent_received", "trace_header",
                    "a_group_keeps_its_order"],
    "SendMessageBatch": ["a_batch_fails_in_part", "a_batch_keeps_its_order"],
    "DeleteMessageBatch": ["deleting_and_changing"],
    "ChangeMessageVisibilityBatch": ["deleting_and_changing"],
    "ReceiveMessage": ["every_type_comes_back", "a_message_is_sent_received",
                       "system_attributes_are_those", "a_group_keeps_its_order"],
    "StartMessageMoveTask": ["paced_seen_and_cancelled"],
    "ListMessageMoveTasks": ["paced_seen_and_cancelled", "go_back_to_where"],
    "CancelMessageMoveTask": ["paced_seen_and_cancelled", "paced_seen_and_cancelled"],
    "Error": ["creating_again"],
}


def passes(name):
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{name}*"]
    tests = unittest.TestSuite(map(loader.loadTestsFromModule, boto3_suite.MODULES))
    assert tests.countTestCases() == 1, name
    return tests.run(unittest.TestResult()).wasSuccessful()


class WrongAnswers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.proxy = Proxy(kit.endpoint).start()
        cls.direct, kit.endpoint = kit.endpoint, cls.proxy.url
        kit.patience = 1

    @classmethod
    def tearDownClass(cls):
        kit.endpoint = cls.direct
        cls.proxy.shutdown()
        cls.proxy.server_close()

    def test_the_truth_passes(self):
        self.proxy.falsehood = {"told": 0}
        for name in sorted({name for names in WITNESSES.values() for name in names}):
            self.assertTrue(passes(name), name)


def noticed(action, field, how):
    def test(self):
        self.proxy.falsehood = {"told": 0, "action": action, "field": field, "how": how}
        self.assertFalse(all(passes(name) for name in WITNESSES[action]),
                         "nobody noticed" if self.proxy.falsehood["told"] else "never told")
        self.assertGreater(self.proxy.falsehood["told"], 0)
    return test


for _action, _fields in FALSEHOODS["json" if kit.is_json() else "query"].items():
    for _field in _fields:
        for _how in ("drop",) if _field.endswith("*") else ("alter", "drop"):
            _name = f"{_action}_{_field.strip('*')}_{_how}".replace("-", "_")
            setattr(WrongAnswers, f"test_{_name}", noticed(_action, _field.strip("*"), _how))


if __name__ == "__main__":
    sys.exit(suite.run([sys.modules["__main__"]]))
