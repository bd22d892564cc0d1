#!/usr/bin/env python3
"""Opens data directories of earlier releases with this one and looks at everything in them.

    data_directory_test.py --binary build/release/stanchion

Each v<format>/ beside this file is a directory as its release left it, and v<format>.json says what
a client must find in it. docs/formats.md tells how they were made. They were made in the year 2076,
and a server does not go back in time: until it is told to move its clock beyond that, time stands
still at the last record, so what is in flight or delayed today stays so.
"""
import argparse
import copy
import json
import pathlib
import shutil
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "cli"))

import virtual_time
from server import Server
from signed_client import Client

VOLATILE = {"LastModifiedTimestamp"}


class Opened:
    """A copy of a golden directory with a server in it."""

    def __init__(self, binary, golden, folder):
        self.data = pathlib.Path(folder) / "data"
        if not self.data.exists():
            shutil.copytree(golden, self.data)
        self.server = Server(binary, "--listen", "127.0.0.1:0", "--data", str(self.data),
                             "--threads", "1", "--virtual-time")
        self.client = Client(self.server.url)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stop()

    def call(self, action, name=None, **arguments):
        if name:
            arguments["QueueUrl"] = f"{self.server.url}/000000000000/{name}"
        return self.client.call(action, **arguments)

    def queues(self):
        urls = self.call("ListQueues").get("QueueUrls", [])
        return {url.rsplit("/", 1)[1]: self.queue(url.rsplit("/", 1)[1]) for url in urls}

    def queue(self, name):
        attributes = self.call("GetQueueAttributes", name, AttributeNames=["All"])["Attributes"]
        arn = attributes["QueueArn"]
        tasks = self.call("ListMessageMoveTasks", SourceArn=arn, MaxResults=10).get("Results", [])
        return {"attributes": {k: v for k, v in attributes.items() if k not in VOLATILE},
                "tags": self.call("ListQueueTags", name).get("Tags", {}),
                "tasks": [{k: v for k, v in task.items() if k != "TaskHandle"} for task in tasks]}

    def queues_once(self, as_wanted):
        """The queues as soon as they are as wanted, or as they are when patience ends: what is on
        its way between two queues arrives by itself, and nothing tells a client when."""
        for _ in range(600):
            queues = self.queues()
            if as_wanted(queues):
                break
            time.sleep(0.05)
        return queues

    def messages(self, name, how_many):
        """Everything that can be received, in the order in which it comes; deletes it. Dead letters
        may still be on their way, so it asks until it has as many as it must have."""
        found = []
        patience = 10
        while True:
            batch = self.call("ReceiveMessage", name, MaxNumberOfMessages=10, WaitTimeSeconds=1,
                              AttributeNames=["All"], MessageAttributeNames=["All"]
                              ).get("Messages", [])
            if not batch:
                patience -= 1
                if len(found) >= how_many or patience == 0:
                    return found
            for message in batch:
                self.call("DeleteMessage", name, ReceiptHandle=message.pop("ReceiptHandle"))
                # It was first received now, unless it was received before.
                if message["Attributes"]["ApproximateReceiveCount"] == "1":
                    del message["Attributes"]["ApproximateFirstReceiveTimestamp"]
                found.append(message)


def look(opened, expected):
    """Everything that a client can see, in the shape of the listing."""
    seen = {"made": expected["made"], "repeat": expected["repeat"], "receipt": expected["receipt"]}
    seen["queues"] = opened.queues_once(lambda queues: queues == expected["queues"])

    # The deduplication window is still open: a repetition is answered with the message that it
    # repeats.
    repeated = opened.call("SendMessage", **expected["repeat"]["request"],
                           name=expected["repeat"]["queue"])
    seen["repeat"]["reply"] = {key: repeated[key] for key in ("MessageId", "SequenceNumber")}

    # A receipt from then is still valid: its key is in the journal.
    opened.call("DeleteMessage", expected["receipt"]["queue"],
                ReceiptHandle=expected["receipt"]["handle"])
    after = opened.queue(expected["receipt"]["queue"])["attributes"]
    seen["receipt"]["in_flight_after"] = after["ApproximateNumberOfMessagesNotVisible"]

    # Thirteen hours later every message is visible, due, or moved.
    _, clock = virtual_time.ask(opened.server.url, "GET")
    ahead = expected["made"] + 13 * 3600 - clock["nowMillis"] // 1000
    while ahead > 0:
        virtual_time.advance(opened.server.url, min(ahead, 365 * 86400))
        ahead -= 365 * 86400
    after = opened.queues_once(lambda queues: not any(map(is_moved_from, queues.values())))
    # Sources of dead letters come before their dead-letter queues.
    order = sorted(after, key=lambda name: "RedrivePolicy" not in after[name]["attributes"])
    seen["messages"] = {name: opened.messages(name, len(expected["messages"][name]))
                        for name in order}
    return seen


def is_moved_from(queue):
    return any(task["Status"] == "RUNNING" for task in queue["tasks"])


def in_a_fixed_order(listing):
    """Order is promised within a group of a FIFO queue, and nowhere else."""
    for name, messages in listing["messages"].items():
        fifo = name.endswith(".fifo")
        messages.sort(key=lambda m: m["Attributes"]["MessageGroupId"] if fifo else m["Body"])
    return listing


def without_new_ids(listing):
    """A message that a task moves when the directory is opened gets a new id and a new time."""
    for messages in listing["messages"].values():
        for message in messages:
            if int(message["Attributes"]["SentTimestamp"]) > (listing["made"] + 60) * 1000:
                message["MessageId"] = "new"
                message["Attributes"]["SentTimestamp"] = "new"
    return listing


def differences(expected, seen, path=""):
    if isinstance(expected, dict) and isinstance(seen, dict):
        for key in sorted(expected.keys() | seen.keys()):
            yield from differences(expected.get(key), seen.get(key), f"{path}/{key}")
    elif expected != seen:
        yield f"{path}: expected {json.dumps(expected)}, found {json.dumps(seen)}"


def check(binary, golden):
    expected = json.loads(golden.with_suffix(".json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        with Opened(binary, golden, folder) as opened:
            seen = in_a_fixed_order(without_new_ids(look(opened, copy.deepcopy(expected))))
            problems = list(differences(expected, seen))
        if problems:
            raise AssertionError("\n".join(problems))
        # This release opens the directory that it has written.
        with Opened(binary, golden, folder) as again:
            left = again.queues()
            if left.keys() != expected["queues"].keys():
                raise AssertionError(f"queues after a restart: {sorted(left)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    binary = str(pathlib.Path(parser.parse_args().binary).resolve())
    passed = failed = 0
    for golden in sorted(path for path in HERE.glob("v*") if path.is_dir()):
        try:
            check(binary, golden)
            passed += 1
        except Exception:  # Whatever failed, the other directories are checked too.
            failed += 1
            print(f"FAILED: {golden.name}")
            traceback.print_exc(file=sys.stdout)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
