#!/usr/bin/env python3
"""What the console says of when and where: the server's time, whatever clock the browser has, and
which server and account this is. In Chromium and against the real server.

    console_where_test.py --binary build/release/stanchion [NAME...]

Needs chromium and chromedriver; without them the tests are skipped. The last line says how many
tests passed, failed and were skipped.
"""
import json
import sys
import urllib.parse

from case import ACCOUNTS, ALICE, IN_MEMORY, check, run_tests, tests_of
from console_kit import AXE, SIZES, check_no_problems, hindrances, is_wider_than_the_window
from signed_client import Client
from virtual_time import VIRTUAL, advance
from webdriver import Browser, is_available

MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR
ENTER = "\ue007"


def go(browser, server, path):
    browser.open(f"{server.url}/console#{path}")


def count_of(client, queue):
    return client.call("GetQueueAttributes", QueueUrl=queue, AttributeNames=["All"])[
        "Attributes"]["ApproximateNumberOfMessages"]


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


def every_page_says_which_server_and_account_this_is(case):
    settings = IN_MEMORY + 'account = "123456789012"\nregion = "eu-west-3"\n'
    with case.serve_config(settings) as server, Browser() as browser:
        Client(server.url).call("CreateQueue", QueueName="orders")
        host = urllib.parse.urlsplit(server.url).netloc
        for path, words in (("/queues", "1 of 1 queues"), ("/create", "Dead-letter queue"),
                            ("/queue/orders/tags", "This queue has no tags."),
                            ("/dead-letters", "No dead-letter queues"), ("/advice", "No advice"),
                            ("/server", "Journal"), ("/queue/nowhere", "There is no queue")):
            go(browser, server, path)
            browser.wait_for(words)
            for here in ("123456789012", "eu-west-3", host):
                check(here in browser.text("#where"), browser.text("#where"))
            check("Key" not in browser.text("#where"), browser.text("#where"))
            check(host in browser.run("return document.title"))
        port = urllib.parse.urlsplit(server.url).port
        server.stop()
        # Another server comes to answer here.
        settings = settings.replace(":0", f":{port}").replace("123456789012", "999999999999")
        with case.serve_config(settings):
            browser.wait_for("999999999999", "#where")


def who_has_signed_in_sees_as_whom(case):
    with case.serve_config(IN_MEMORY + ACCOUNTS) as server, Browser() as browser:
        Client(server.url, ALICE).call("CreateQueue", QueueName="orders")
        host = urllib.parse.urlsplit(server.url).netloc
        go(browser, server, "/queue/orders/settings")
        browser.wait_for("Access key id")
        check(host in browser.text("#where") and "Account" not in browser.text("#where"))
        check(host in browser.run("return document.title"))
        browser.type("#key-id", ALICE.id)
        browser.type("#key-secret", ALICE.secret)
        browser.press("Sign in")
        browser.wait_for("Empty or delete it")
        for here in (ALICE.id, "111111111111", "us-east-1", host):
            check(here in browser.text("#where"), browser.text("#where"))
        for size in SIZES.values():
            for dark in (False, True):
                browser.look_like(*size, dark=dark)
                check(not is_wider_than_the_window(browser))
                if AXE.exists():
                    check(not hindrances(browser), hindrances(browser))
        browser.press("Delete the queue …")
        for here in (ALICE.id, "111111111111", "us-east-1", host):
            browser.wait_for(here, "dialog")
        browser.press("Cancel", "dialog")
        browser.press("Sign out")
        browser.wait_for("Access key id")
        check(ALICE.id not in browser.text("#where") and host in browser.text("#where"))


def a_queue_is_lost_only_if_its_name_is_typed(case):
    with case.serve_config(IN_MEMORY) as server, Browser() as browser:
        client = Client(server.url)
        client.call("CreateQueue", QueueName="orders")
        client.call("SendMessage", QueueUrl="orders", MessageBody="kept")
        go(browser, server, "/queue/orders/settings")
        for question, answer in (("Purge …", "Purge"), ("Delete the queue …", "Delete the queue")):
            browser.press(question)
            browser.wait_for("Type orders to confirm", "dialog")
            for typed in ("", "o", "order", "Orders", "orders-dead"):
                browser.fill("#typed-name", typed)
                browser.keys(ENTER)
                check(browser.run("return document.querySelector('dialog .danger').disabled"), typed)
            browser.press("Cancel", "dialog")
        check(count_of(client, "orders") == "1")
        browser.press("Purge …")
        browser.type("#typed-name", "orders")
        browser.press("Purge", "dialog")
        browser.wait_for("orders was purged.")
        check(count_of(client, "orders") == "0")
        browser.press("Delete the queue …")
        browser.type("#typed-name", "orders" + ENTER)
        browser.wait_for("There is no queue yet")
        check(client.call("ListQueues") == {})


def deep_and_long_json_does_not_stop_the_page(case):
    with case.serve_config(IN_MEMORY) as server, Browser() as browser:
        client = Client(server.url)
        client.call("CreateQueue", QueueName="q")
        deep = "[" * 16_000 + "]" * 16_000
        wide = "[" * 90 + "1" + ",1" * 60_000 + "]" * 90
        long = json.dumps({"long": "x" * 300_000, "end": 1}, separators=(",", ":"))
        for body in (deep, wide, long, "[" * 100 + "]" * 100, '{"a":[1,{"b":[]}]}'):
            client.call("SendMessage", QueueUrl="q", MessageBody=body)
        go(browser, server, "/queue/q/messages")
        browser.wait_for("Page 1: 5 messages")
        texts = browser.run("""return [...document.querySelectorAll("#peeked pre")]
          .map((one) => one.textContent.slice(0, 50))""")
        check(texts[:3] == [deep[:50], wide[:50], long[:50]], texts)
        check(texts[3].startswith("[\n  [\n    [\n"), texts[3])
        check(texts[4] == '{\n  "a": [\n    1,\n    {\n      "b": []\n    }\n  ]\n}', texts[4])
        browser.press("Send", ".tabs")
        browser.fill("#send-body", deep)
        browser.wait_for("valid JSON")
        check_no_problems(browser)


def main():
    tests = tests_of(globals())
    if is_available():
        return run_tests(tests, __doc__)
    return run_tests([], __doc__, skipped=len(tests))


if __name__ == "__main__":
    sys.exit(main())
