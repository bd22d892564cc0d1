#!/usr/bin/env python3
"""What the console says of when: the server's time, whatever clock the browser has. In Chromium and
against the real server.

    console_where_test.py --binary build/release/stanchion [NAME...]

Needs chromium and chromedriver; without them the tests are skipped. The last line says how many
tests passed, failed and were skipped.
"""
import json
import sys

from case import run_tests, tests_of
from console_kit import check_no_problems
from signed_client import Client
from virtual_time import VIRTUAL, advance
from webdriver import Browser, is_available

MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def go(browser, server, path):
    browser.open(f"{server.url}/console#{path}")


def live_for_hours(server):
    """A server whose clock is far ahead, with messages of five and a half hours ago."""
    client = Client(server.url)
    advance(server.url, 3 * HOUR)
    client.call("CreateQueue", QueueName="dead")
    client.call("CreateQueue", QueueName="orders", Attributes={"RedrivePolicy": json.dumps(
        {"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:dead", "maxReceiveCount": 1})})
    client.call("CreateQueue", QueueName="steps.fifo", Attributes={"FifoQueue": "true"})
    client.call("SendMessage", QueueUrl="steps.fifo", MessageBody="pay", MessageGroupId="ada",
                MessageDeduplicationId="1")
    client.call("ReceiveMessage", QueueUrl="steps.fifo", VisibilityTimeout=12 * HOUR)
    client.call("SendMessage", QueueUrl="orders", MessageBody="poison")
    client.call("ReceiveMessage", QueueUrl="orders", VisibilityTimeout=0)
    client.call("ReceiveMessage", QueueUrl="orders")
    client.call("SendMessage", QueueUrl="orders", MessageBody="boots")
    advance(server.url, 5 * HOUR + 30 * MINUTE)
    for _ in range(3):
        client.call("SendMessage", QueueUrl="orders", MessageBody="fresh")
    # What is in charts is of minutes that have ended.
    advance(server.url, MINUTE)


def check_ages(browser, server):
    """Half an hour of real time may pass meanwhile."""
    go(browser, server, "/queue/orders/messages?search=boots")
    browser.wait_for("boots", "#peeked")
    browser.wait_for("5 h old", "#peeked article header")
    go(browser, server, "/queue/steps.fifo/groups")
    browser.wait_for("locked for 5 h", "#groups")
    browser.wait_for("free in 6 h at the latest", "#groups")
    go(browser, server, "/queue/steps.fifo/messages")
    browser.wait_for("visible in 6 h", "#peeked")
    go(browser, server, "/dead-letters/dead")
    browser.wait_for("moved here 5 h ago, sent 5 h ago", "#dead .reason")
    go(browser, server, "/queue/orders")
    browser.wait(lambda: "Sent 3" in browser.text(".figures").replace("\n", " "))


def ages_and_charts_go_by_the_clock_of_the_server(case):
    with case.serve_config(VIRTUAL) as server:
        live_for_hours(server)
        for wrong in (0, -DAY, 9 * DAY):
            with Browser() as browser:
                browser.be_wrong_by(wrong * 1000)
                check_ages(browser, server)
                check_no_problems(browser)


def clocks_that_are_set_while_a_page_is_open(case):
    with case.serve_config(VIRTUAL) as server, Browser() as browser:
        live_for_hours(server)
        browser.be_wrong_by(0)
        go(browser, server, "/queue/steps.fifo/groups")
        browser.wait_for("locked for 5 h", "#groups")
        for wrong in (-DAY, DAY):
            browser.run("window.wrongBy = arguments[0] * 1000", wrong)
            check_ages(browser, server)
        go(browser, server, "/queue/steps.fifo/groups")
        browser.wait_for("locked for 5 h", "#groups")
        advance(server.url, 2 * HOUR)
        browser.wait_for("locked for 7 h", "#groups")
        browser.wait_for("free in 4 h at the latest", "#groups")


def main():
    tests = tests_of(globals())
    if is_available():
        return run_tests(tests, __doc__)
    return run_tests([], __doc__, skipped=len(tests))


if __name__ == "__main__":
    sys.exit(main())
