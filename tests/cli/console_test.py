#!/usr/bin/env python3
"""The console, in Chromium and against the real server; and who is kept out of it.

    console_test.py --binary build/release/stanchion [NAME...]
    console_test.py --binary build/release/stanchion --pictures docs/pictures

Needs chromium and chromedriver; without them the tests that drive a browser are skipped. So is the
search for what hinders people without axe-core, which tests/clients/run installs. The last line
says how many tests passed, failed and were skipped. With --pictures it writes the pictures of the
documents instead.
"""
import base64
import gzip
import http.client
import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.parse

from case import ACCOUNTS, ALICE, IN_MEMORY, Case, check, run_tests, tests_of
from console_kit import (AXE, MINUTE, SIZES, VIEWS, Traffic, check_no_problems, furnish, hindrances,
                         is_wider_than_the_window, visit, write_picture)
from signed_client import Client
from virtual_time import advance
from webdriver import Browser, is_available

CREDENTIALS = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "AWS_ACCESS_KEY_ID": "any",
               "AWS_SECRET_ACCESS_KEY": "thing", "AWS_DEFAULT_REGION": "us-east-1"}
ASSETS = ("", "/", "/app.js", "/style.css", "/chart.min.js", "/icon.svg")


def ask(url, method, path, body=None, **headers):
    """(status, headers, body) of a call that a program makes; _ in names stands for -."""
    at = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(at.netloc, timeout=30)
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body=body, headers=headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, answer, text


def own(url, **more):
    """The headers of a call that the console's own page makes."""
    return {"Origin": url, "X_Stanchion_Console": "1", "Sec_Fetch_Site": "same-origin",
            "Content_Type": "application/x-amz-json-1.0", **more}


def the_page_is_compressed_and_has_a_strict_policy(case):
    with case.serve_config(IN_MEMORY) as server:
        for path in ASSETS:
            status, answer, text = ask(server.url, "GET", "/console" + path, Accept_Encoding="gzip")
            check(status == 200 and gzip.decompress(text), path)
            policy = answer.getheader("Content-Security-Policy")
            check("default-src 'none'" in policy and "unsafe" not in policy, policy)
            check(answer.getheader("X-Content-Type-Options") == "nosniff")
        check(b"<script>" not in gzip.decompress(
            ask(server.url, "GET", "/console", Accept_Encoding="gzip")[2]))
        check(ask(server.url, "GET", "/console/none.js", Accept_Encoding="gzip")[0] == 404)
        check(ask(server.url, "PUT", "/console")[0] == 405)


def other_pages_and_other_names_are_kept_out(case):
    with case.serve_config(IN_MEMORY) as server:
        send = {"X_Amz_Target": "AmazonSQS.CreateQueue"}
        body = json.dumps({"QueueName": "made"})

        def call(**headers):
            given = {**own(server.url), **send, **headers}
            return ask(server.url, "POST", "/console/api", body,
                       **{name: value for name, value in given.items() if value is not None})[0]

        check(call() == 200)
        wrong = ({"Origin": "http://evil.example"}, {"Origin": None}, {"Origin": "null"},
                 {"Origin": server.url + ".evil.example"}, {"X_Stanchion_Console": None},
                 {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"},
                 {"Host": "evil.example"}, {"Host": "evil.example", "Origin": "http://evil.example"})
        for headers in wrong:
            check(call(**headers) == 403, headers)
        for path in ("/console", "/console/events"):
            check(ask(server.url, "GET", path, Host="evil.example", Accept_Encoding="gzip")[0] == 403)
        check(ask(server.url, "GET", "/console/events", Sec_Fetch_Site="cross-site")[0] == 403)


def with_accounts_only_a_session_may_call(case):
    with case.serve_config(IN_MEMORY + ACCOUNTS) as server:
        call = {**own(server.url), "X_Amz_Target": "AmazonSQS.ListQueues"}

        def sign_in(key_id, secret):
            return ask(server.url, "POST", "/console/sign-in",
                       json.dumps({"id": key_id, "secret": secret}), **own(server.url))

        check(ask(server.url, "POST", "/console/api", "{}", **call)[0] == 401)
        for key_id, secret in ((ALICE.id, "wrong"), ("AKIANOBODY", ALICE.secret), ("", "")):
            check(sign_in(key_id, secret)[0] == 403, key_id)
        status, answer, _ = sign_in(ALICE.id, ALICE.secret)
        cookies = answer.headers.get_all("Set-Cookie")
        check(status == 200 and "HttpOnly" in cookies[0]
              and all("SameSite=Strict" in cookie and "Path=/console" in cookie
                      for cookie in cookies), cookies)
        cookie = cookies[0].split(";")[0]
        Client(server.url, ALICE).call("CreateQueue", QueueName="alices")
        status, _, text = ask(server.url, "POST", "/console/api", "{}", **call, Cookie=cookie)
        check(status == 200 and b"/111111111111/alices" in text, text)
        forged = cookie[:-1] + ("0" if cookie[-1] != "0" else "1")
        for other in (forged, "stanchion_console=", cookie.replace("stanchion_console", "x")):
            check(ask(server.url, "POST", "/console/api", "{}", **call, Cookie=other)[0] == 401)
        # A cookie alone is not enough: another site's page could have it sent.
        check(ask(server.url, "POST", "/console/api", "{}",
                  **{**call, "Origin": "http://evil.example"}, Cookie=cookie)[0] == 403)
        check(ask(server.url, "POST", "/console/sign-out", "{}", **own(server.url),
                  Cookie=cookie)[0] == 200)
        check(ask(server.url, "POST", "/console/api", "{}", **call, Cookie=cookie)[0] == 401)


def attribute_of(client, queue, name):
    return client.call("GetQueueAttributes", QueueUrl=queue, AttributeNames=[name]).get(
        "Attributes", {}).get(name)


def go(browser, server, path):
    browser.open(f"{server.url}/console#{path}")


def creating_a_queue_with_its_dead_letter_queue(case):
    with case.serve_config(IN_MEMORY) as server, Browser() as browser:
        client = Client(server.url)
        go(browser, server, "/queues")
        browser.wait_for("There is no queue yet")
        browser.press("Create a queue")
        browser.type("#new-name", "orders")
        check(browser.run("return document.querySelector('#new-dead-name').value") == "orders-dead")
        browser.fill("#attribute-VisibilityTimeout", "43201")
        browser.press("Create", "main form")
        browser.wait_for("Invalid value for the parameter VisibilityTimeout.")
        check(client.call("ListQueues") == {}, "something was made though it was refused")
        browser.fill("#attribute-VisibilityTimeout", "90")
        browser.wait_for("= 1 min 30 s")
        browser.fill("#new-tags", "team=payments\nstage = test")
        browser.press("Create", "main form")
        browser.wait_for("orders", "h1")
        browser.wait_for("After 5 receives a message goes to orders-dead.")
        check(attribute_of(client, "orders", "VisibilityTimeout") == "90")
        check(attribute_of(client, "orders-dead", "MessageRetentionPeriod") == "1209600")
        check(client.call("ListQueueTags", QueueUrl="orders")["Tags"]
              == {"team": "payments", "stage": "test"})

        go(browser, server, "/create")
        browser.type("#new-name", "steps")
        browser.tick("#new-fifo")
        browser.fill("#attribute-ContentBasedDeduplication", "true")
        browser.fill("#new-dead", "")
        browser.press("Create", "main form")
        browser.wait_for("steps.fifo", "h1")
        check(attribute_of(client, "steps.fifo", "ContentBasedDeduplication") == "true")
        check(attribute_of(client, "steps.fifo", "RedrivePolicy") is None)
        check_no_problems(browser, ("400",))


def the_list_is_live_and_does_not_flicker(case):
    with case.serve_config(IN_MEMORY) as server, Browser() as browser:
        client = Client(server.url)
        for name in ("b", "a", "c.fifo"):
            client.call("CreateQueue", QueueName=name,
                        Attributes={"FifoQueue": "true"} if "." in name else {})
        go(browser, server, "/queues")
        browser.wait_for("3 of 3 queues")
        browser.run("for (const row of document.querySelectorAll('tbody tr')) row.kept = true;"
                    "document.querySelector('tbody a').focus()")
        client.call("SendMessage", QueueUrl="b", MessageBody="x")
        browser.wait(lambda: browser.run(
            "return document.querySelectorAll('tbody tr')[1].cells[1].innerText.trim()") == "1")
        check(browser.run("return [...document.querySelectorAll('tbody tr')].every((r) => r.kept)"
                          " && document.activeElement.textContent === 'a'"))
        browser.press("Waiting", "thead")
        browser.wait(lambda: browser.run("return document.querySelector('tbody a').textContent")
                     == "b")
        check(browser.run("return location.hash") == "#/queues?sort=visible")
        client.call("CreateQueue", QueueName="from-elsewhere")
        browser.wait_for("from-elsewhere")
        browser.type("#filter", "else")
        browser.wait_for("1 of 4 queues")
        # The first letter was enough to find it; the others come a moment later.
        browser.wait(lambda: "filter=else" in browser.run("return location.hash"))
        browser.fill("#filter", "no such queue")
        browser.wait_for("No queue has this text in its name.")
        check_no_problems(browser)


def a_tab_that_nobody_looks_at_has_no_stream(case):
    with case.serve_config(IN_MEMORY) as server, Browser() as browser:
        client = Client(server.url)
        browser.devtools("Page.addScriptToEvaluateOnNewDocument", source="""
          window.streams = [];
          window.EventSource = class extends EventSource {
            constructor(path) { super(path); window.streams.push(this); }
          };""")
        go(browser, server, "/queues")
        browser.wait_for("There is no queue yet")
        states = "return window.streams.map((one) => one.readyState)"
        look = """Object.defineProperty(document, "hidden",
                    { value: arguments[0], configurable: true });
                  document.dispatchEvent(new Event("visibilitychange"));"""
        browser.run(look, True)
        check(browser.run(states) == [2], browser.run(states))
        client.call("CreateQueue", QueueName="meanwhile")
        browser.run(look, False)
        browser.wait_for("meanwhile")
        check(browser.run(states) == [2, 1], browser.run(states))
        go(browser, server, "/advice")
        browser.wait_for("No advice")
        check(browser.run(states) == [2, 2], browser.run(states))


def sending_looking_and_receiving(case):
    with case.serve_config(IN_MEMORY) as server, Browser() as browser:
        client = Client(server.url)
        client.call("CreateQueue", QueueName="orders")
        go(browser, server, "/queue/orders/messages")
        browser.wait_for("The queue is empty.")
        browser.press("Send", ".tabs")
        browser.fill("#send-body", '{"item": "boots", "id": 12345678901234567890}')
        browser.wait_for("valid JSON")
        browser.press("Add an attribute")
        browser.type(".attribute input", "colour")
        browser.type(".attribute input[placeholder=value]", "brown")
        browser.press("Send", "#panel form")
        browser.wait_for("Sent as", "#send-state")
        browser.press("Messages", ".tabs")
        browser.wait_for('"id": 12345678901234567890', "#peeked")
        browser.press("Details and 1 attribute")
        browser.wait_for("brown (String)", "#peeked")
        for text, found in (("no such text", "No message matches."), ("brown", "boots")):
            browser.fill("#peek-search", text)
            browser.press("Look")
            browser.wait_for(found, "#peeked")
        check("search=brown" in browser.run("return location.hash"))
        check(attribute_of(client, "orders", "ApproximateNumberOfMessages") == "1",
              "looking has taken the message")

        browser.press("Edit and send again")
        browser.wait_for("Send this message again")
        browser.fill("#send-copies", "25")
        browser.fill("#send-delay", "900")
        browser.press("Send", "#panel form")
        browser.wait_for("25 messages were sent.", "#send-state")
        check(attribute_of(client, "orders", "ApproximateNumberOfMessagesDelayed") == "25")
        browser.press("Messages", ".tabs")
        browser.wait_for("Page 1: 20 messages")
        browser.press("Next page")
        browser.wait_for("Page 2: 6 messages")
        browser.press("First page")
        browser.wait_for("Page 1: 20 messages")

        browser.press("Receive", ".tabs")
        browser.press("Receive …")
        browser.wait_for("Consumers do not see the messages", "dialog")
        browser.press("Receive", "dialog")
        browser.wait_for("boots", "#received")
        browser.press("Give back")
        browser.wait_for("The message is visible again.")
        browser.press("Receive …")
        browser.wait_for("boots", "#received")
        browser.press("Delete …")
        browser.wait_for("1 message is lost", "dialog")
        browser.press("Delete", "dialog")
        browser.wait_for("The message was deleted.")
        check("Messages" not in client.call("ReceiveMessage", QueueUrl="orders"))
        check_no_problems(browser)


def files_of_messages(case):
    lines = case.file("lines.txt", "".join(f"line {i}\n" for i in range(123)) + "\n")
    array = case.file("array.json", json.dumps(
        ["text", {"a": 1}, {"MessageBody": "more", "MessageGroupId": "g"},
         {"MessageBody": "never", "DelaySeconds": 901}, "last"]))
    with case.serve_config(IN_MEMORY) as server, Browser() as browser:
        client = Client(server.url)
        client.call("CreateQueue", QueueName="q")
        go(browser, server, "/queue/q/send")
        browser.type("#send-file", str(lines))
        browser.press("Send the file")
        browser.wait_for("123 messages were sent of 123.", "#file-state")
        check(attribute_of(client, "q", "ApproximateNumberOfMessages") == "123")
        go(browser, server, "/queue/q")
        go(browser, server, "/queue/q/send")
        browser.type("#send-file", str(array))
        browser.press("Send the file")
        browser.wait_for("4 messages were sent of 5.", "#file-state")
        browser.wait_for("line 4: ")
        check(attribute_of(client, "q", "ApproximateNumberOfMessages") == "127")
        found = client.call("StanchionPeek", QueueUrl="q", MessageGroupId="g")["Messages"]
        check([one["Body"] for one in found] == ["more"], found)


def settings_tags_and_the_end_of_a_queue(case):
    with case.serve_config(IN_MEMORY) as server, Browser() as browser:
        client = Client(server.url)
        client.call("CreateQueue", QueueName="orders")
        go(browser, server, "/queue/orders/settings")
        browser.fill("#attribute-VisibilityTimeout", "43201")
        browser.wait_for("1 change not saved yet")
        browser.press("Save")
        browser.wait_for("Invalid value for the parameter VisibilityTimeout.")
        browser.fill("#attribute-VisibilityTimeout", "77")
        browser.press("Save")
        browser.wait_for("Saved: VisibilityTimeout.")
        check(attribute_of(client, "orders", "VisibilityTimeout") == "77")
        browser.press("Tags", ".tabs")
        browser.wait_for("This queue has no tags.")
        browser.type("#tag-key", "team")
        browser.type("#tag-value", "payments")
        browser.press("Set", "#panel form")
        browser.wait_for("payments", "#tags")
        check(client.call("ListQueueTags", QueueUrl="orders")["Tags"] == {"team": "payments"})
        browser.press("Remove the tag team")
        browser.wait_for("This queue has no tags.")

        for _ in range(3):
            client.call("SendMessage", QueueUrl="orders", MessageBody="lost")
        browser.press("Settings", ".tabs")
        browser.press("Purge …")
        browser.wait_for("3 messages (3 waiting, 0 in flight, 0 delayed)", "dialog")
        browser.press("Cancel", "dialog")
        check(attribute_of(client, "orders", "ApproximateNumberOfMessages") == "3")
        browser.press("Purge …")
        browser.type("#typed-name", "orders")
        browser.press("Purge", "dialog")
        browser.wait_for("orders was purged.")
        check(attribute_of(client, "orders", "ApproximateNumberOfMessages") == "0")
        browser.press("Delete the queue …")
        browser.wait_for("The queue is lost", "dialog")
        browser.type("#typed-name", "orders")
        browser.press("Delete the queue", "dialog")
        browser.wait_for("There is no queue yet")
        check(client.call("ListQueues") == {})
        check_no_problems(browser, ("400",))


def the_policy_in_words(case):
    with case.serve_config(IN_MEMORY) as server, Browser() as browser:
        client = Client(server.url)
        client.call("CreateQueue", QueueName="orders")
        go(browser, server, "/queue/orders/access")
        browser.wait_for("Nobody else may do anything.")
        browser.type("#grant-label", "shop")
        browser.type("#grant-accounts", "123456789012")
        browser.tick("#grant-SendMessage")
        browser.press("Give")
        browser.wait_for("Account 123456789012 may SendMessage.", "#rights")
        statement = {
            "Sid": "closed", "Effect": "Deny", "Principal": "*", "Action": "sqs:*",
            "Resource": attribute_of(client, "orders", "QueueArn"),
            "Condition": {"Bool": {"aws:SecureTransport": "false"},
                          "NotIpAddress": {"aws:SourceIp": ["10.0.0.0/8", "127.0.0.1/32"]}}}
        policy = json.loads(attribute_of(client, "orders", "Policy"))
        policy["Statement"] = [policy["Statement"], statement] if isinstance(
            policy["Statement"], dict) else [*policy["Statement"], statement]
        words = ("Everybody must not do everything, if the connection is not encrypted and the "
                 "caller's address is not within 10.0.0.0/8 or 127.0.0.1/32.")
        browser.fill("#policy", json.dumps(policy))
        browser.wait_for(words, "#rights-draft")
        browser.press("Save the policy")
        browser.wait_for(words, "#rights")
        browser.fill("#policy", '{"Statement": 1')
        browser.wait_for("This is not JSON", "#rights-draft")
        browser.press("Save the policy")
        browser.wait_for("Invalid value for the parameter Policy.")
        browser.press("Undo changes")
        browser.press("Remove the permission closed")
        browser.wait_for(words, "dialog")
        browser.press("Remove", "dialog")
        browser.wait_for("The permission closed was removed.")
        check("closed" not in attribute_of(client, "orders", "Policy"))


def dead_letters_go_back(case):
    with case.serve_config(IN_MEMORY) as server, Browser() as browser:
        client = Client(server.url)
        dead = client.call("CreateQueue", QueueName="dead")["QueueUrl"]
        arn = attribute_of(client, "dead", "QueueArn")
        client.call("CreateQueue", QueueName="orders", Attributes={
            "VisibilityTimeout": "0", "RedrivePolicy": json.dumps(
                {"deadLetterTargetArn": arn, "maxReceiveCount": 2})})
        go(browser, server, "/dead-letters")
        browser.wait_for("1 dead-letter queue")
        # At one a second they take a minute, so that there is time to cancel.
        for i in range(0, 60, 10):
            client.call("SendMessageBatch", QueueUrl="orders", Entries=[
                {"Id": str(j), "MessageBody": f"order {i + j}"} for j in range(10)])
        while attribute_of(client, "dead", "ApproximateNumberOfMessages") != "60":
            client.call("ReceiveMessage", QueueUrl="orders", MaxNumberOfMessages=10)
        browser.wait_for("orders", "tbody")
        browser.press("dead", "tbody")
        browser.wait_for("Came from orders after 2 receives: first received", "#dead")
        browser.wait_for(", last ", "#dead .reason")
        browser.press("Edit and send again")
        browser.wait_for("orders", "h1")
        browser.wait_for("Send this message again")
        go(browser, server, "/dead-letters/dead")
        browser.fill("#redrive-velocity", "1")
        browser.press("Redrive …")
        browser.wait_for("60 messages leave this queue", "dialog")
        browser.press("Redrive", "dialog")
        browser.wait_for("running", "#tasks")
        browser.press("Cancel", "#tasks")
        browser.wait_for("cancelled:", "#tasks")
        browser.fill("#redrive-velocity", "")
        browser.press("Redrive …")
        browser.press("Redrive", "dialog")
        browser.wait_for("completed:", "#tasks")
        browser.wait_for("The dead-letter queue is empty", "#dead")
        check(attribute_of(client, dead, "ApproximateNumberOfMessages") == "0")
        check_no_problems(browser)


# What tries to be more than text. Names of queues cannot hold any of it.
HOSTILE = ("<script>window.broken = 1</script>", "<img src=x onerror='window.broken = 1'>",
           "\u202egnol si siht", "\u2066\u200f", "\U0001f600\U0001f469\u200d\U0001f4bb e\u0301",
           "'\"`${window.broken = 1}", "javascript:window.broken=1", "]]>\r\n--\t\\u003c")


def hostile_content_stays_text(case):
    with case.serve_config(IN_MEMORY) as server, Browser() as browser:
        client = Client(server.url)
        client.call("CreateQueue", QueueName="q", tags={
            f"k{i}": text for i, text in enumerate(("<b>bold</b>", "a+b=c"))})
        for i, text in enumerate(HOSTILE):
            client.call("SendMessage", QueueUrl="q", MessageBody=text,
                        MessageGroupId=f"<i>{i}</i>", MessageAttributes={
                            "a": {"DataType": "String", "StringValue": text}})
        packed = base64.b64encode(gzip.compress(b'{"deep": "<b>inside</b>"}')).decode()
        client.call("SendMessage", QueueUrl="q", MessageBody=packed)
        client.call("SendMessage", QueueUrl="q", MessageBody="<p>" + "x" * ((1 << 20) - 3))
        go(browser, server, "/queue/q/messages")
        browser.wait_for("‹U+202E›gnol", "#peeked")
        shown = browser.text("#peeked")
        check("<script>window.broken = 1</script>" in shown and "\u202e" not in shown)
        check("\U0001f469\u200d\U0001f4bb" in shown, "an emoji was torn")
        browser.press("Decode")
        browser.wait_for('"deep": "<b>inside</b>"', "#peeked")
        browser.press("Show all 1,048,576 characters")
        browser.wait(lambda: browser.run(
            "return [...document.querySelectorAll('pre')].some((p) => p.textContent.length > 1e6)"))
        browser.press("Tenants", ".tabs")
        browser.wait_for("<i>3</i>", "#groups")
        browser.press("<i>3</i>", "#groups")
        browser.wait_for("‹U+2066›", "#peeked")
        browser.press("Tags", ".tabs")
        browser.wait_for("<b>bold</b>", "#tags")
        go(browser, server, "/queue/%3Cimg%20src=x%3E/%E0%A4%A?x=%")
        browser.wait_for("There is no queue <img src=x>")
        check(browser.run("return window.broken === undefined"
                          " && !document.querySelector('main img, main script, main b, main i')"))
        check_no_problems(browser, ("400",))


def a_copied_command_sends_the_same_message(case):
    with case.serve_config(IN_MEMORY) as server, Browser() as browser:
        client = Client(server.url)
        client.call("CreateQueue", QueueName="q")
        message = {"MessageBody": "-it's \"$(touch x)\" `y`\n\\ \U0001f600", "MessageAttributes": {
            "a.b": {"DataType": "String", "StringValue": "'; touch z; '"}}}
        client.call("SendMessage", QueueUrl="q", **message)
        go(browser, server, "/queue/q/messages")
        browser.control("Copy as command")
        browser.run("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
        browser.press("Copy as command")
        browser.wait_for("Copied as a command of the AWS CLI.")
        command = browser.run("return window.copied")
        done = subprocess.run(command, shell=True, cwd=case.directory, text=True,
                              capture_output=True, env=CREDENTIALS)
        check(done.returncode == 0, done.stderr)
        both = client.call("StanchionPeek", QueueUrl="q")["Messages"]
        check(len(both) == 2 and both[0]["Body"] == both[1]["Body"] == message["MessageBody"], both)
        check(both[0]["MessageAttributes"] == both[1]["MessageAttributes"], both)
        check(not any((case.directory / name).exists() for name in "xz"), "the shell ran the body")


def a_server_that_is_gone_is_said_to_be(case):
    with case.serve_config(IN_MEMORY) as server, Browser() as browser:
        Client(server.url).call("CreateQueue", QueueName="orders")
        go(browser, server, "/queues")
        browser.wait_for("1 of 1 queues")
        server.stop()
        browser.wait_for("No live figures: trying again", "#connection")
        go(browser, server, "/advice")
        browser.wait_for("The server does not answer. Is it still running?")


def groups_and_tenants(case):
    server, shop = furnish(case, 1)
    with server, Browser() as browser:
        visit(browser, server, "/queue/steps.fifo/groups")
        browser.wait_for("customer-7", "#groups")
        browser.wait_for("locked for", "#groups")
        visit(browser, server, "/queue/mails/groups")
        browser.wait_for("big-shop", "#groups")
        shop.send("thumbnails", ["{}"], MessageGroupId="lone")
        shop.client.call("ReceiveMessage", QueueUrl="thumbnails", VisibilityTimeout=900)
        go(browser, server, "/queue/thumbnails/groups")
        browser.wait_for("100 %", "#groups")
        lines = browser.run("""return [...document.querySelectorAll(".share-text")].map((one) => {
          const text = document.createRange();
          text.selectNodeContents(one);
          return text.getClientRects().length;
        })""")
        check(lines and set(lines) == {1}, f"a share takes several lines: {lines}")
        check_no_problems(browser)


def charts_show_what_happened(case):
    server, shop = furnish(case, 3)
    with server, Browser() as browser:
        # What was sent last is shown when its minute has ended, which may be now or later.
        advance(server.url, MINUTE)
        visit(browser, server, "/queue/orders")
        sent = f"Sent {shop.orders + 4:,}"
        browser.wait(lambda: "Sent –" not in browser.text(".figures"))
        check(sent in browser.text(".figures").replace("\n", " "), browser.text(".figures"))
        check(browser.run("return document.querySelector('canvas').getAttribute('aria-label')")
              .startswith("Messages: Sent"))
        for title, key in (("3 hours", "3h"), ("Week", "1w"), ("14 days", "2w")):
            browser.press(title)
            check(browser.run("return location.hash").endswith(f"range={key}"))
        check_no_problems(browser)


def everything_fits_a_phone_and_a_desk(case):
    server, _ = furnish(case, 2)
    with server, Browser() as browser:
        for size, (width, height) in SIZES.items():
            browser.look_like(width, height)
            for path in VIEWS:
                visit(browser, server, path)
                check(not is_wider_than_the_window(browser), f"{path} on a {size}")
        check_no_problems(browser, ("400", "404"))


def nothing_hinders_people(case):
    server, _ = furnish(case, 2)
    with server, Browser() as browser:
        found = []
        for dark in (False, True):
            for path in VIEWS:
                browser.look_like(*SIZES["phone" if dark else "desk"], dark=dark)
                visit(browser, server, path)
                found += [f"{path}{' in the dark' if dark else ''}: {line}"
                          for line in hindrances(browser)]
            visit(browser, server, "/queue/orders/settings")
            browser.press("Purge …")
            browser.wait_for("Nothing brings them back.", "dialog")
            found += [f"a question: {line}" for line in hindrances(browser)]
            browser.press("Cancel", "dialog")
        check(not found, "\n".join(found))
    with case.serve_config(IN_MEMORY + ACCOUNTS) as server, Browser() as browser:
        go(browser, server, "/queues")
        for dark in (False, True):
            browser.look_like(*SIZES["phone" if dark else "desk"], dark=dark)
            browser.wait_for("Access key id")
            check(not hindrances(browser), hindrances(browser))


def the_keyboard_is_enough(case):
    tab, enter, escape = "\ue004", "\ue007", "\ue00c"
    with case.serve_config(IN_MEMORY) as server, Browser() as browser:
        Client(server.url).call("CreateQueue", QueueName="orders")

        def focused():
            return browser.run("return document.activeElement.textContent.trim()"
                               " || document.activeElement.id")

        go(browser, server, "/queues")
        browser.wait_for("1 of 1 queues")
        browser.keys(tab)
        check(focused() == "Skip to the content", focused())
        browser.keys(enter)
        check(browser.run("return document.activeElement.id") == "main")
        seen = []
        while focused() != "orders" and len(seen) < 30:
            browser.keys(tab)
            seen.append(focused())
        check(seen[:2] == ["Create a queue", "filter"], seen)
        browser.keys(enter)
        browser.wait_for("orders", "h1")
        browser.run("document.querySelector('.tabs a:nth-child(6)').focus()")
        browser.keys(enter)
        browser.wait_for("Empty or delete it")
        check(focused() == "Settings", "the focus left its tab")
        browser.run("[...document.querySelectorAll('button')].find((one) =>"
                    " one.textContent === 'Purge …').focus()")
        browser.keys(enter)
        browser.wait_for("All messages of the queue are lost", "dialog")
        check(focused() == "typed-name", focused())
        browser.keys(escape)
        browser.wait(lambda: focused() == "Purge …")
        browser.keys(enter)
        browser.wait_for("All messages of the queue are lost", "dialog")
        browser.keys(enter)  # Without the name, this does nothing.
        browser.keys(*"orders", enter)
        browser.wait_for("orders was purged.")


def signing_in_and_out(case):
    with case.serve_config(IN_MEMORY + ACCOUNTS) as server, Browser() as browser:
        Client(server.url, ALICE).call("CreateQueue", QueueName="alices")
        go(browser, server, "/queue/alices/tags")
        browser.wait_for("Sign in")
        browser.type("#key-id", ALICE.id)
        browser.type("#key-secret", "wrong")
        browser.press("Sign in")
        browser.wait_for("do not belong together")
        browser.fill("#key-secret", "")
        browser.type("#key-secret", ALICE.secret)
        browser.press("Sign in")
        browser.wait_for("This queue has no tags.")
        check("stanchion_console" not in browser.run("return document.cookie"))
        browser.press("Sign out")
        browser.wait_for("Access key id")
        go(browser, server, "/queues")
        browser.wait_for("Access key id")


def ten_thousand_queues(case):
    with case.serve_config(IN_MEMORY) as server, Browser() as browser:
        client = Client(server.url)
        for i in range(10_000):
            client.call("CreateQueue", QueueName=f"queue-{i:05}")
        client.call("SendMessage", QueueUrl="queue-07777", MessageBody="x")
        go(browser, server, "/queues")
        browser.wait_for("The first 200 of 10,000 queues")
        browser.press("Waiting", "thead")
        browser.wait_for("queue-07777")
        browser.type("#filter", "09876")
        browser.wait_for("1 of 10,000 queues")
        browser.press("queue-09876")
        browser.wait_for("Waiting\n0", "#facts")
        go(browser, server, "/dead-letters")
        browser.wait_for("No dead-letter queues")


BROWSING = (creating_a_queue_with_its_dead_letter_queue, the_list_is_live_and_does_not_flicker,
            a_tab_that_nobody_looks_at_has_no_stream,
            sending_looking_and_receiving, files_of_messages, settings_tags_and_the_end_of_a_queue,
            the_policy_in_words, dead_letters_go_back, hostile_content_stays_text,
            a_copied_command_sends_the_same_message, a_server_that_is_gone_is_said_to_be,
            groups_and_tenants, charts_show_what_happened, everything_fits_a_phone_and_a_desk,
            nothing_hinders_people, the_keyboard_is_enough, signing_in_and_out,
            ten_thousand_queues)

# The pictures of the documents: what is shown, in which window, in which colours.
PICTURES = {
    "queues": ("/queues", 1200, 620, False),
    "queue-dark": ("/queue/orders?range=3h", 1200, 820, True),
    "messages": ("/queue/orders/messages", 1200, 760, False),
    "dead-letters": ("/dead-letters/orders-dead", 1200, 760, False),
    "phone": ("/queue/orders", 390, 760, True),
}


def take_pictures(binary, folder):
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="stanchion-") as directory:
        server, shop = furnish(Case(binary, directory), 180)
        with server, Browser() as browser, Traffic(shop):
            # The sparklines need some time to become more than a dot.
            browser.look_like(1200, 620)
            browser.open(f"{server.url}/console#/queues")
            browser.wait(lambda: browser.run(
                "return document.querySelector('.spark .line').getAttribute('d')?.length > 180"))
            for name, (path, width, height, dark) in PICTURES.items():
                browser.look_like(width, height, dark)
                browser.run("location.hash = arguments[0]", path)
                browser.wait_for(VIEWS.get(path, "Age of the oldest message"))
                browser.wait(lambda: browser.run(
                    "return !document.querySelector('.legend')"
                    " || document.querySelector('.legend b').textContent !== '–'"))
                write_picture(browser, folder, name)


def main():
    if "--pictures" in sys.argv:
        at = sys.argv.index("--pictures")
        folder = pathlib.Path(sys.argv[at + 1])
        binary = sys.argv[sys.argv.index("--binary") + 1] if "--binary" in sys.argv \
            else "build/release/stanchion"
        take_pictures(str(pathlib.Path(binary).resolve()), folder)
        return 0
    tests = tests_of(globals())
    left_out = []
    if not is_available():
        left_out = list(BROWSING)
    elif not AXE.exists():
        left_out = [nothing_hinders_people]
    return run_tests([test for test in tests if test not in left_out], __doc__,
                     skipped=len(left_out))


if __name__ == "__main__":
    sys.exit(main())
