#!/usr/bin/env python3
"""Messages that are chosen in the console, in Chromium and against the real server.

    console_choice_test.py --binary build/release/stanchion [NAME...]

Needs chromium and chromedriver; without them the tests are skipped. The last line says how many
tests passed, failed and were skipped.
"""
import json
import sys

from case import IN_MEMORY, check, run_tests, tests_of
from console_kit import AXE, check_no_problems, hindrances
from signed_client import Client
from webdriver import Browser, is_available

SPACE = " "


def go(browser, server, path):
    browser.open(f"{server.url}/console#{path}")


def arn_of(client, queue):
    return client.call("GetQueueAttributes", QueueUrl=queue,
                       AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]


def messages_of(client, queue):
    return client.call("StanchionPeek", QueueUrl=queue, MaxResults=100).get("Messages", [])


def bodies_of(client, queue):
    return [message["Body"] for message in messages_of(client, queue)]


def choose(browser, client, queue, bodies):
    """Ticks the boxes of these messages."""
    ids = {message["Body"]: message["MessageId"] for message in messages_of(client, queue)}
    for body in bodies:
        browser.tick(f'article[data-id="{ids[body]}"] header input[type=checkbox]')


def make_dead_letters(client, bodies, suffix="", **more):
    """A queue and its dead-letter queue, with these messages in the latter."""
    fifo = {"FifoQueue": "true"} if suffix else {}
    client.call("CreateQueue", QueueName="dead" + suffix, Attributes=fifo)
    client.call("CreateQueue", QueueName="orders" + suffix, Attributes={
        **fifo, "VisibilityTimeout": "0", "RedrivePolicy": json.dumps(
            {"deadLetterTargetArn": arn_of(client, "dead" + suffix), "maxReceiveCount": 1})})
    for body in bodies:
        unique = {"MessageDeduplicationId": body.replace(" ", "-")} if suffix else {}
        client.call("SendMessage", QueueUrl="orders" + suffix, MessageBody=body, **unique, **more)
    while len(bodies_of(client, "dead" + suffix)) < len(bodies):
        client.call("ReceiveMessage", QueueUrl="orders" + suffix, MaxNumberOfMessages=10)


def chosen_messages_are_deleted_and_no_others(case):
    with case.serve_config(IN_MEMORY) as server, Browser() as browser:
        client = Client(server.url)
        client.call("CreateQueue", QueueName="orders")
        for i in range(30):
            client.call("SendMessage", QueueUrl="orders", MessageBody=f"order {i}")
        client.call("ReceiveMessage", QueueUrl="orders", VisibilityTimeout=600)
        go(browser, server, "/queue/orders/messages")
        browser.wait_for("order 19", "#peeked")
        check(browser.run("return document.querySelector('article input').disabled"),
              "a message in flight can be chosen")
        choose(browser, client, "orders", ["order 3", "order 7"])
        browser.press("Delete 2 chosen …")
        browser.wait_for("2 messages are lost from orders", "dialog")
        browser.press("Cancel", "dialog")
        check(len(bodies_of(client, "orders")) == 30, "deleted though it was cancelled")
        browser.press("Delete 2 chosen …")
        browser.press("Delete", "dialog")
        browser.wait_for("2 messages were deleted.", "#chosen-result")
        left = [f"order {i}" for i in range(30) if i not in (3, 7)]
        check(sorted(bodies_of(client, "orders")) == sorted(left))

        # A consumer is quicker: the message is named, and the other one is deleted.
        choose(browser, client, "orders", ["order 1", "order 4"])
        taken = client.call("ReceiveMessage", QueueUrl="orders", VisibilityTimeout=600)["Messages"]
        check(taken[0]["Body"] == "order 1")
        browser.press("Delete 2 chosen …")
        browser.press("Delete", "dialog")
        browser.wait_for("1 message was deleted.", "#chosen-result")
        browser.wait_for(taken[0]["MessageId"], "#chosen-result")
        browser.wait_for("it was received, deleted or moved meanwhile", "#chosen-result")
        check("order 1" in bodies_of(client, "orders")
              and "order 4" not in bodies_of(client, "orders"))

        browser.tick("#choose-all")
        browser.press("Delete 18 chosen …")
        browser.press("Delete", "dialog")
        browser.wait_for("18 messages were deleted.", "#chosen-result")
        check(len(bodies_of(client, "orders")) == 9, bodies_of(client, "orders"))
        check_no_problems(browser)


def chosen_dead_letters_go_back_as_they_were(case):
    with case.serve_config(IN_MEMORY) as server, Browser() as browser:
        client = Client(server.url)
        attributes = {"color": {"DataType": "String", "StringValue": "blue"},
                      "blob": {"DataType": "Binary", "BinaryValue": "AAEC"}}
        make_dead_letters(client, [f"order {i}" for i in range(4)], MessageAttributes=attributes,
                          MessageGroupId="tenant", MessageSystemAttributes={
                              "AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1"}})
        client.call("SendMessage", QueueUrl="dead", MessageBody="sent here")
        go(browser, server, "/dead-letters/dead")
        browser.wait_for("sent here", "#dead")
        check(not hindrances(browser) if AXE.exists() else True, "axe")
        choose(browser, client, "dead", ["order 1", "order 3", "sent here"])
        browser.press("Redrive 3 chosen …")
        browser.wait_for("3 messages leave dead for the queues from which they came", "dialog")
        browser.press("Redrive", "dialog")
        browser.wait_for("2 messages were moved", "#chosen-result")
        browser.wait_for("it does not say from which queue it came", "#chosen-result")
        check(sorted(bodies_of(client, "dead")) == ["order 0", "order 2", "sent here"])
        back = messages_of(client, "orders")
        check(sorted(message["Body"] for message in back) == ["order 1", "order 3"])
        for message in back:
            system = message["Attributes"]
            check(message["MessageAttributes"] == attributes and system["MessageGroupId"] == "tenant"
                  and system["AWSTraceHeader"] == "Root=1", message)

        # To a queue that is not there, and to one that is.
        client.call("CreateQueue", QueueName="elsewhere")
        choose(browser, client, "dead", ["sent here"])
        for name, words in (("nowhere", "The specified queue does not exist"),
                            ("elsewhere", "1 message was moved to elsewhere.")):
            browser.fill("#chosen-target", name)
            browser.press("Redrive 1 chosen …")
            browser.press("Redrive", "dialog")
            browser.wait_for(words, "#chosen-result")
            if name == "nowhere":
                check("sent here" in bodies_of(client, "dead"), "it was lost")
                choose(browser, client, "dead", ["sent here"])
        check(bodies_of(client, "elsewhere") == ["sent here"])
        check_no_problems(browser, ("400",))


def chosen_messages_of_a_fifo_queue_keep_their_order(case):
    with case.serve_config(IN_MEMORY) as server, Browser() as browser:
        client = Client(server.url)
        make_dead_letters(client, [f"step {i}" for i in range(4)], ".fifo", MessageGroupId="g")
        client.call("SetQueueAttributes", QueueUrl="orders.fifo",
                    Attributes={"RedrivePolicy": "", "VisibilityTimeout": "30"})
        go(browser, server, "/dead-letters/dead.fifo")
        browser.wait_for("step 3", "#dead")
        choose(browser, client, "dead.fifo", ["step 2"])
        browser.press("Redrive 1 chosen …")
        browser.press("Redrive", "dialog")
        browser.wait_for("another message of its group comes first", "#chosen-result")
        check(bodies_of(client, "dead.fifo") == [f"step {i}" for i in range(4)])
        choose(browser, client, "dead.fifo", ["step 2", "step 1", "step 0"])
        browser.press("Redrive 3 chosen …")
        browser.press("Redrive", "dialog")
        browser.wait_for("3 messages were moved", "#chosen-result")
        check(bodies_of(client, "dead.fifo") == ["step 3"])
        check(bodies_of(client, "orders.fifo") == ["step 0", "step 1", "step 2"])
        check_no_problems(browser)


def a_refused_send_deletes_nothing(case):
    with case.serve_config(IN_MEMORY) as server, Browser() as browser:
        client = Client(server.url)
        client.call("CreateQueue", QueueName="orders")
        client.call("CreateQueue", QueueName="small", Attributes={"MaximumMessageSize": "1024"})
        for body in ("short", "x" * 2000):
            client.call("SendMessage", QueueUrl="orders", MessageBody=body)
        go(browser, server, "/queue/orders/messages")
        browser.wait_for("short", "#peeked")
        browser.tick("#choose-all")
        browser.press("Move 2 chosen …")
        browser.wait_for("Name the queue to which the messages are to go.")
        browser.fill("#chosen-target", "small")
        browser.press("Move 2 chosen …")
        browser.press("Move", "dialog")
        browser.wait_for("1 message was moved to small.", "#chosen-result")
        browser.wait_for("small did not take it", "#chosen-result")
        check(bodies_of(client, "small") == ["short"])
        left = messages_of(client, "orders")
        check([m["Body"] for m in left] == ["x" * 2000] and left[0]["State"] == "Visible", left)
        check_no_problems(browser, ("400",))


def an_edited_message_replaces_the_original(case):
    with case.serve_config(IN_MEMORY) as server, Browser() as browser:
        client = Client(server.url)
        make_dead_letters(client, ["wrong"])
        go(browser, server, "/dead-letters/dead")
        browser.wait_for("wrong", "#dead")
        browser.press("Edit and send again")
        browser.wait_for("When it was sent, remove the original from dead")
        browser.fill("#send-body", "right")
        browser.tick("#send-removes")
        browser.press("Send", "form")
        browser.wait_for("the original was removed from dead")
        check(bodies_of(client, "orders") == ["right"] and bodies_of(client, "dead") == [])
        check_no_problems(browser)


def the_keyboard_is_enough_to_choose(case):
    with case.serve_config(IN_MEMORY) as server, Browser() as browser:
        client = Client(server.url)
        client.call("CreateQueue", QueueName="orders")
        for body in ("a", "b"):
            client.call("SendMessage", QueueUrl="orders", MessageBody=body)
        go(browser, server, "/queue/orders/messages")
        browser.wait_for("2 messages")
        browser.run("document.querySelector('#choose-all').focus()")
        browser.keys(SPACE)
        browser.wait_for("Delete 2 chosen …")
        browser.run("document.querySelector('article header input').focus()")
        browser.keys(SPACE)
        browser.wait_for("Delete 1 chosen …")
        check(browser.run("return document.querySelector('#choose-all').indeterminate"))
        check(browser.run("return document.activeElement.getAttribute('aria-label')")
              == f"Choose message {messages_of(client, 'orders')[0]['MessageId']}")
        if AXE.exists():
            check(not hindrances(browser), hindrances(browser))


def main():
    tests = tests_of(globals())
    if is_available():
        return run_tests(tests, __doc__)
    return run_tests([], __doc__, skipped=len(tests))


if __name__ == "__main__":
    sys.exit(main())
