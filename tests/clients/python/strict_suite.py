"""boto3 against a server that was started with --strict: AWS's rules of 60 seconds."""
import sys

import kit
from support import suite


class Strict(kit.SqsTest):
    def test_a_deleted_name_rests_for_60_seconds(self):
        url = self.queue()
        name = url.rsplit("/", 1)[1]
        self.sqs.delete_queue(QueueUrl=url)
        with self.refused("AWS.SimpleQueueService.QueueDeletedRecently",
                          "You must wait 60 seconds after deleting a queue before you can create "
                          "another with the same name.", "QueueDeletedRecently"):
            self.sqs.create_queue(QueueName=name)

    def test_purges_are_60_seconds_apart(self):
        url = self.queue()
        self.sqs.purge_queue(QueueUrl=url)
        with self.refused("AWS.SimpleQueueService.PurgeQueueInProgress",
                          f"Only one PurgeQueue operation on {url.rsplit('/', 1)[1]} is allowed "
                          "every 60 seconds.", "PurgeQueueInProgress", status=403):
            self.sqs.purge_queue(QueueUrl=url)


if __name__ == "__main__":
    sys.exit(suite.run([sys.modules["__main__"]]))
