#!/bin/sh
# Handles one message: the body is on standard input, the rest in the environment. The exit status
# says whether it may be deleted.
set -eu
order=$(cat)
echo "handling $order, delivery $SQS_RECEIVE_COUNT"
case "$order" in
  bad*) echo "that is no order" >&2; exit 1 ;;
  slow*) sleep 15 ;; # Longer than the visibility; the worker holds the message meanwhile.
esac

# Idempotent: the name of the file is the order, and a file that is there is complete.
if [ ! -e "$STORE/$order" ]; then
  echo "$order" > "$STORE/.$SQS_MESSAGE_ID"
  mv "$STORE/.$SQS_MESSAGE_ID" "$STORE/$order"
fi
