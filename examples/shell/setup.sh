#!/bin/sh
# Makes a queue and its dead-letter queue with the AWS CLI, and prints the queue's URL. After the
# second failure a message is in the dead-letter queue.
#
#   AWS_ENDPOINT_URL=http://127.0.0.1:9324 ./setup.sh orders
set -eu
sqs() { aws --endpoint-url "$AWS_ENDPOINT_URL" --output text sqs "$@"; }

dead=$(sqs create-queue --queue-name "$1-dead" --query QueueUrl)
arn=$(sqs get-queue-attributes --queue-url "$dead" --attribute-names QueueArn \
      --query Attributes.QueueArn)
sqs create-queue --queue-name "$1" --query QueueUrl --attributes \
  '{"RedrivePolicy":"{\"deadLetterTargetArn\":\"'"$arn"'\",\"maxReceiveCount\":\"2\"}"}'
