#!/bin/sh
# Takes orders from a queue and stores each of them once, as docs/guide/processing-messages-safely.md
# describes. Ends on SIGTERM.
#
#   QUEUE_URL=http://127.0.0.1:9324/000000000000/orders STORE=/var/lib/orders ./orders.sh
exec stanchion work --queue-url "$QUEUE_URL" --visibility 10 --concurrency 4 --timeout 60 \
  --exec "$(dirname "$0")/handle.sh"
