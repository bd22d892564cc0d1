#!/usr/bin/env python3
"""The console, in Chromium and against the real server; and who is kept out of it.

    console_test.py --binary build/release/stanchion [NAME...]

Needs chromium and chromedriver; without them the tests that drive a browser are skipped. The last
line says how many tests passed, failed and were skipped.
"""
import gzip
import http.client
import json
import sys
import urllib.parse

from case import ACCOUNTS, ALICE, IN_MEMORY, check, run_tests, tests_of
from signed_client import Client
from webdriver import Browser, is_available

ASSETS = ("", "/", "/app.js", "/style.css")


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


def drive(server, browser):
    """Every page and action, one after the other."""
    browser.open(server.url + "/console")
    browser.wait_for("There is no queue yet")
    browser.type("#new-name", "orders")
    browser.click(browser.find("#new-dead"))
    browser.press("Create")
    browser.wait_for("orders", "h1")
    browser.wait_for("The queue is empty.")

    browser.type("#send-body", '{"item": "<b>boots</b>"}')
    browser.press("Send")
    browser.wait_for('"item": "<b>boots</b>"', "#peeked")
    browser.type("#peek-search", "no such text")
    browser.press("Look")
    browser.wait_for("No message matches.")
    browser.run("document.querySelector('#peek-search').value = ''")
    browser.press("Look")
    browser.wait_for("boots", "#peeked")
    client = Client(server.url)
    check(client.call("GetQueueAttributes", QueueUrl="orders", AttributeNames=["All"])["Attributes"]
          ["ApproximateNumberOfMessages"] == "1", "looking has taken the message")

    browser.press("Receive up to 10")
    browser.wait_for("boots", "#received")
    browser.press("Delete")
    browser.wait_for("Deleted.")
    check("Messages" not in client.call("ReceiveMessage", QueueUrl="orders"))

    browser.press("Show groups")
    browser.wait_for("There are no groups.")
    browser.press("Show attributes")
    browser.run("document.querySelector('#attribute-VisibilityTimeout').value = '43201'")
    browser.press("Save")
    browser.wait_for("Invalid value for the parameter VisibilityTimeout.")
    browser.run("document.querySelector('#attribute-VisibilityTimeout').value = '77'")
    browser.press("Save")
    browser.wait_for("Saved: VisibilityTimeout.")

    client.call("SendMessage", QueueUrl="orders", MessageBody="lost")
    browser.wait_for("Waiting\n1", ".facts")
    browser.press("Purge …")
    browser.wait_for("All messages of orders are lost", "dialog")
    browser.press("Cancel")
    browser.press("Purge …")
    browser.press("Purge")
    browser.wait_for("orders was purged.")

    browser.open(server.url + "/console#/queues")
    browser.wait_for("2 of 2 queues")
    client.call("CreateQueue", QueueName="from-elsewhere")
    browser.wait_for("from-elsewhere")
    browser.type("#filter", "dead")
    browser.wait_for("1 of 3 queues")

    for _ in range(60):
        client.call("ReceiveMessage", QueueUrl="orders")
    browser.open(server.url + "/console#/advice")
    browser.wait_for("ShortPolling", "#advice")

    browser.open(server.url + "/console#/queue/orders")
    browser.press("Delete the queue …")
    browser.wait_for("The queue orders is deleted", "dialog")
    browser.press("Delete the queue")
    browser.wait_for("2 of 2 queues")


def is_wider_than_the_window(browser):
    return browser.run("return document.documentElement.scrollWidth > innerWidth")


def at_a_desk(case):
    with case.serve_config(IN_MEMORY) as server, Browser() as browser:
        drive(server, browser)
        # Errors that the test provoked are logged by the browser as failed loads.
        check(not [p for p in browser.problems() if "400" not in p["message"]], browser.problems())


def on_a_phone_in_the_dark(case):
    with case.serve_config(IN_MEMORY) as server, Browser(width=500, dark=True) as browser:
        browser.open(server.url + "/console")
        browser.wait_for("There is no queue yet")
        check(browser.run("return matchMedia('(prefers-color-scheme: dark)').matches"))
        Client(server.url).call("CreateQueue", QueueName="a" * 60)
        browser.wait_for("a" * 60)
        check(not is_wider_than_the_window(browser), "the list")
        browser.open(server.url + "/console#/queue/" + "a" * 60)
        browser.wait_for("The queue is empty.")
        check(not is_wider_than_the_window(browser), "a queue")


def signing_in_and_out(case):
    with case.serve_config(IN_MEMORY + ACCOUNTS) as server, Browser() as browser:
        Client(server.url, ALICE).call("CreateQueue", QueueName="alices")
        browser.open(server.url + "/console")
        browser.wait_for("Sign in")
        browser.type("#key-id", ALICE.id)
        browser.type("#key-secret", "wrong")
        browser.press("Sign in")
        browser.wait_for("do not belong together")
        browser.run("document.querySelector('#key-secret').value = ''")
        browser.type("#key-secret", ALICE.secret)
        browser.press("Sign in")
        browser.wait_for("alices")
        check("stanchion_console" not in browser.run("return document.cookie"))
        browser.press("Sign out")
        browser.wait_for("Access key id")


def ten_thousand_queues(case):
    with case.serve_config(IN_MEMORY) as server, Browser() as browser:
        client = Client(server.url)
        for i in range(10_000):
            client.call("CreateQueue", QueueName=f"queue-{i:05}")
        browser.open(server.url + "/console")
        browser.wait_for("The first 200 of 10,000 queues")
        browser.type("#filter", "09876")
        browser.wait_for("1 of 10,000 queues")


BROWSING = (at_a_desk, on_a_phone_in_the_dark, signing_in_and_out, ten_thousand_queues)

if __name__ == "__main__":
    TESTS = tests_of(globals())
    if not is_available():
        TESTS = [test for test in TESTS if test not in BROWSING]
    sys.exit(run_tests(TESTS, __doc__))
