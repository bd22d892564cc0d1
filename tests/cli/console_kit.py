"""What the tests of the console share: a server with something to see, a browser with a way to find
what hinders people, and pictures."""
import json
import pathlib
import random
import threading

from case import check
from signed_client import Client
from virtual_time import VIRTUAL, advance

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
AXE = ROOT / "tests/clients/js/node_modules/axe-core/axe.min.js"
SIZES = {"desk": (1200, 900), "phone": (390, 844)}
MINUTE = 60
PICTURE_BYTES_MAX = 150_000

# Every view that has a URL, of what furnish() makes, and words that show that it has come.
VIEWS = {
    "/queues": "orders-dead", "/queues?filter=orders&sort=visible": "orders-dead",
    "/create": "Dead-letter queue",
    "/queue/orders": "Age of the oldest message", "/queue/orders?range=3d": "3 days",
    "/queue/orders/messages": "customer", "/queue/orders/messages?state=InFlight": "in flight",
    "/queue/orders/send": "Many messages from a file", "/queue/orders/receive": "like a consumer",
    "/queue/steps.fifo/groups": "locked", "/queue/mails/groups": "noisy",
    "/queue/orders/settings": "Retention", "/queue/orders/access": "Account 123456789012",
    "/queue/orders/tags": "payments", "/dead-letters": "orders-dead",
    "/dead-letters/orders-dead": "after 3 receives", "/advice": "PoisonMessage",
    "/server": "Journal", "/queue/nowhere": "There is no queue nowhere",
}


def own_policy(arn):
    statement = {"Effect": "Allow", "Resource": arn, "Principal": {"AWS": "123456789012"},
                 "Action": ["sqs:SendMessage", "sqs:GetQueueUrl"], "Sid": "shop",
                 "Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


class Shop:
    """A few queues of a shop, used by clients that behave well and badly."""

    def __init__(self, server):
        self.server, self.client = server, Client(server.url)
        self.random = random.Random(7)
        self.orders = 0

    def make_queues(self):
        call = self.client.call
        for name in ("orders-dead", "orders", "mails", "thumbnails", "invoices"):
            call("CreateQueue", QueueName=name)
        call("CreateQueue", QueueName="steps.fifo", Attributes={"FifoQueue": "true"})
        arn = call("GetQueueAttributes", QueueUrl="orders", AttributeNames=["QueueArn"])
        arn = arn["Attributes"]["QueueArn"]
        call("SetQueueAttributes", QueueUrl="orders-dead",
             Attributes={"MessageRetentionPeriod": "1209600"})
        call("SetQueueAttributes", QueueUrl="orders", Attributes={
            "Policy": own_policy(arn), "RedrivePolicy": json.dumps(
                {"deadLetterTargetArn": arn + "-dead", "maxReceiveCount": 3})})
        call("TagQueue", QueueUrl="orders", Tags={"team": "payments", "stage": "production"})

    def order(self):
        self.orders += 1
        return json.dumps({"order": 10_000 + self.orders, "customer": self.random.choice(
            ("Ada", "Grace", "Edsger", "Barbara")), "items": [{"sku": "boots-42", "count": 1}],
            "total": f"{self.random.randint(20, 400)}.90"})

    def send(self, queue, bodies, **more):
        entries = [{"Id": str(i), "MessageBody": body, **more} for i, body in enumerate(bodies)]
        for i in range(0, len(entries), 10):
            self.client.call("SendMessageBatch", QueueUrl=queue, Entries=entries[i:i + 10])

    def work(self, queue, calls, delete=True, most=10):
        """Receives some at a time, and deletes what came."""
        for _ in range(calls):
            messages = self.client.call("ReceiveMessage", QueueUrl=queue,
                                        MaxNumberOfMessages=most).get("Messages", [])
            if messages and delete:
                self.client.call("DeleteMessageBatch", QueueUrl=queue, Entries=[
                    {"Id": str(i), "ReceiptHandle": one["ReceiptHandle"]}
                    for i, one in enumerate(messages)])

    def live(self, minutes):
        """Minutes of a day: orders come in waves, and workers lag behind."""
        for minute in range(minutes):
            wave = 30 + 25 * (minute % 45 > 25) + self.random.randint(-8, 8)
            self.send("orders", [self.order() for _ in range(wave)])
            self.work("orders", 4 if minute % 45 > 25 else 5)
            self.send("thumbnails", ["{}"] * self.random.randint(1, 6))
            self.work("thumbnails", 1)
            advance(self.server.url, MINUTE)

    def fail(self):
        """Orders that nobody can handle."""
        self.send("orders", [json.dumps({"order": i, "customer": None}) for i in range(4)])
        for _ in range(4):
            self.work("orders", 1, delete=False)
            advance(self.server.url, 31)

    def be_used_badly(self):
        """A poison message; groups that are locked, and a tenant that is noisy."""
        call = self.client.call
        self.send("invoices", ["poison"])
        for _ in range(8):
            self.work("invoices", 1, delete=False)
            self.live(1)
        for group in ("customer-7", "customer-8", "customer-9"):
            for step in ("reserve", "pay", "ship"):
                call("SendMessage", QueueUrl="steps.fifo", MessageBody=step, MessageGroupId=group,
                     MessageDeduplicationId=group + step)
        call("ReceiveMessage", QueueUrl="steps.fifo", VisibilityTimeout=600)
        self.send("mails", ["newsletter"] * 400, MessageGroupId="big-shop")
        for tenant in ("baker", "florist", "smith"):
            self.send("mails", ["receipt"] * 3, MessageGroupId=tenant)

    def be_busy(self):
        """What is to be seen now: messages in every state."""
        self.send("orders", [self.order() for _ in range(25)])
        self.client.call("SendMessage", QueueUrl="orders", MessageBody=self.order(),
                         DelaySeconds=900, MessageAttributes={
                             "source": {"DataType": "String", "StringValue": "web"}})
        self.client.call("ReceiveMessage", QueueUrl="orders", MaxNumberOfMessages=3,
                         VisibilityTimeout=900)
        for _ in range(6):
            self.client.call("ReceiveMessage", QueueUrl="mails", MaxNumberOfMessages=10,
                             VisibilityTimeout=900)


def furnish(case, minutes):
    """A server that had a busy time, so that its clock is ahead, and its users."""
    server = case.serve_config(VIRTUAL)
    shop = Shop(server)
    shop.make_queues()
    shop.fail()
    shop.live(minutes)
    shop.be_used_badly()
    shop.be_busy()
    return server, shop


class Traffic:
    """Sends and deletes until it is left, so that rates are to be seen."""

    def __init__(self, shop):
        self.shop, self.over = shop, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        some = self.shop.random.randint
        while not self.over.wait(1):
            self.shop.send("orders", [self.shop.order() for _ in range(some(0, 2))])
            self.shop.work("orders", 1, most=some(1, 2))
            self.shop.send("thumbnails", ["{}"] * some(0, 2))
            self.shop.work("thumbnails", 1)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def visit(browser, server, path):
    if path == "/advice":
        # What was seen minutes ago counts for less, and a busy machine takes minutes to come here.
        for _ in range(5):
            Client(server.url).call("ReceiveMessage", QueueUrl="invoices", VisibilityTimeout=0)
    browser.open(f"{server.url}/console#{path}")
    browser.wait_for(VIEWS[path])


def is_wider_than_the_window(browser):
    return browser.run("return document.documentElement.scrollWidth > innerWidth")


def hindrances(browser):
    """What axe finds on the page that is shown, a line each."""
    if not browser.run("return 'axe' in window"):
        browser.run(AXE.read_text() + "; return true")
    found = browser.run_async("""const done = arguments[0];
      axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => done(
        violations.flatMap(({ id, nodes }) => nodes.map((node) =>
          `${id}: ${node.html.slice(0, 200)} (${node.failureSummary.replaceAll("\\n", " ")})`))));
      """)
    return found


def check_no_problems(browser, expected=()):
    """The browser's log has nothing but failed calls that the test provoked."""
    bad = [line["message"] for line in browser.problems()
           if not any(words in line["message"] for words in expected)]
    check(not bad, bad)


def write_picture(browser, folder, name):
    data = browser.picture()
    check(len(data) <= PICTURE_BYTES_MAX, f"{name}: {len(data)} bytes")
    (folder / f"{name}.png").write_bytes(data)
