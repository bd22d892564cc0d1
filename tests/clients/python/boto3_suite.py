"""boto3 against the server at STANCHION_ENDPOINT."""
import sys

import kit
from support import suite

import boto3_dead_letters
import boto3_fifo
import boto3_messages
import boto3_queues

MODULES = [boto3_queues, boto3_messages, boto3_fifo, boto3_dead_letters]


def every_action_of_the_client_was_exercised():
    missing = kit.offered() - kit.called
    assert not missing, f"no test calls {', '.join(sorted(missing))}"


if __name__ == "__main__":
    sys.exit(suite.run(MODULES, every_action_of_the_client_was_exercised))
