"""Whom the real program lets do what, and how much: rights that end while a call waits, payloads
without a signature, quotas, files with secrets. Part of cli_test.py."""
import base64
import datetime
import hashlib
import hmac
import json
import subprocess
import threading
import urllib.parse

from case import ACCOUNTS, ALICE, BOB, IN_MEMORY, check, refused
from server import write
from signed_client import Client, Key, Refused
from virtual_time import VIRTUAL, advance


class Waiting(threading.Thread):
    """A call that waits: its reply or its error."""

    def __init__(self, client, action, **parameters):
        super().__init__(daemon=True)
        self.ask = lambda: client.call(action, **parameters)
        self.reply = self.error = None
        self.start()

    def run(self):
        try:
            self.reply = self.ask()
        except Refused as error:
            self.error = error


def a_poll_ends_with_its_key(case):
    user = '[[account.key]]\nid = "AKIACAROL"\nsecret = "carols"\nuser = "carol"\n'
    path = case.file("s.toml", IN_MEMORY + ACCOUNTS + user)
    with case.serve("--config", path) as server:
        bob, carol = Client(server.url, BOB), Client(server.url, Key("AKIACAROL", "carols"))
        url = bob.call("CreateQueue", QueueName="q")["QueueUrl"]
        poll = Waiting(carol, "ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20)
        write(path, IN_MEMORY + ACCOUNTS)
        server.reload("reloaded")
        bob.call("SendMessage", QueueUrl=url, MessageBody="not for carol")
        poll.join(10)
        check(poll.error and poll.error.code == "UnrecognizedClientException", poll.reply)
        [message] = bob.call("ReceiveMessage", QueueUrl=url)["Messages"]
        check(message["Body"] == "not for carol")


def accounts_that_come_later_end_polls_of_nobody_and_do_not_go_again(case):
    path = case.file("s.toml", VIRTUAL)
    with case.serve("--config", path) as server:
        anybody, alice = Client(server.url), Client(server.url, ALICE)
        url = anybody.call("CreateQueue", QueueName="q")["QueueUrl"]
        poll = Waiting(anybody, "ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20)
        anybody.call("ListQueues")
        write(path, VIRTUAL + ACCOUNTS)
        server.reload("reloaded")
        check(refused(anybody.call, "ListQueues").code == "MissingAuthenticationTokenException")
        # Nothing signals that the poll is parked; the first move of the clock after that ends it.
        moves = 0
        while poll.is_alive() and moves < 10_000:
            advance(server.url, 20)
            moves += 1
            poll.join(0.01)
        check(poll.error and poll.error.code == "MissingAuthenticationTokenException", poll.reply)
        write(path, VIRTUAL)
        line = server.reload("not reloaded")
        check("removing all accounts needs a restart" in line, line)
        alice.call("ListQueues")


def an_account_has_only_so_many_queues(case):
    config = IN_MEMORY + ACCOUNTS + "[limits]\nqueues_per_account = 3\n"
    config = config.replace("in_memory = true\nthreads = 1", f'data = "{case.directory}/d"')
    for attempt in range(2):  # The second time they exist already.
        with case.serve_config(config) as server:
            alice, bob = Client(server.url, ALICE), Client(server.url, BOB)
            for name in "abc":
                alice.call("CreateQueue", QueueName=name)
            error = refused(alice.call, "CreateQueue", QueueName="d")
            check((error.status, error.code, error.message) == (
                403, "OverLimit", "The account 111111111111 has 3 queues, as many as it may have "
                "here (limits.queues_per_account)."), error)
            alice.call("CreateQueue", QueueName="a")  # It exists.
            refused(alice.call, "CreateQueue", QueueName="not a name")
            bob.call("CreateQueue", QueueName="b")
            alice.call("DeleteQueue", QueueUrl="b")
            refused(alice.call, "CreateQueue", QueueName="not a name")  # Takes nobody's place.
            alice.call("CreateQueue", QueueName="b")
            check(refused(alice.call, "CreateQueue", QueueName="d").code == "OverLimit")
            bob.call("DeleteQueue", QueueUrl="b")


def the_queues_of_an_account_take_only_so_much_memory(case):
    config = IN_MEMORY + ACCOUNTS + '[limits]\nqueue_bytes_per_account = "250KiB"\n'
    config = config.replace("in_memory = true\nthreads = 1", f'data = "{case.directory}/d"')
    # A character of four bytes counts as one for SQS.
    tags = {f"tag-{number}": "\U0001F600" * 256 for number in range(50)}
    for attempt in range(2):  # The second time they exist already.
        with case.serve_config(config) as server:
            alice, bob = Client(server.url, ALICE), Client(server.url, BOB)
            for name in "abcde":
                alice.call("CreateQueue", QueueName=name)
            for name in "abcde":
                alice.call("UntagQueue", QueueUrl=name, TagKeys=list(tags))
            for name in "abcd":
                alice.call("TagQueue", QueueUrl=name, Tags=tags)
            error = refused(alice.call, "TagQueue", QueueUrl="e", Tags=tags)
            check((error.status, error.code) == (403, "OverLimit"), error)
            check("limits.queue_bytes_per_account" in error.message, error)
            check(refused(alice.call, "CreateQueue", QueueName="f", tags=tags).code == "OverLimit")
            alice.call("SendMessage", QueueUrl="e", MessageBody="goes on")
            alice.call("CreateQueue", QueueName="f")
            alice.call("DeleteQueue", QueueUrl="f")
            bob.call("CreateQueue", QueueName="b", tags=tags)
            bob.call("DeleteQueue", QueueUrl="b")
    config = config.replace("250KiB", "8KiB")
    with case.serve_config(config) as server:  # They stay, and can become less.
        alice = Client(server.url, ALICE)
        check(len(alice.call("ListQueueTags", QueueUrl="d")["Tags"]) == 50)
        check(refused(alice.call, "TagQueue", QueueUrl="e", Tags={"a": "b"}).code == "OverLimit")
        for name in "abcde":
            alice.call("UntagQueue", QueueUrl=name, TagKeys=list(tags))
        check(refused(alice.call, "TagQueue", QueueUrl="e", Tags={"a": "b"}).code == "OverLimit")
        for name in "bcd":
            alice.call("DeleteQueue", QueueUrl=name)
        alice.call("TagQueue", QueueUrl="e", Tags={"a": "b"})


def an_account_does_not_take_the_memory_of_others(case):
    # A budget of one MiB for each shard, so that little fills one.
    config = (IN_MEMORY + ACCOUNTS).replace("in_memory = true", f'data = "{case.directory}/d"\n'
                                            'memory = "128MiB"\nshards = 64')
    with case.serve_config(config) as server:
        alice, bob = Client(server.url, ALICE), Client(server.url, BOB)
        groups = iter(range(1 << 30))

        def send_groups(client, queue):
            client.call("SendMessageBatch", QueueUrl=queue, Entries=[
                {"Id": str(i), "MessageBody": "small", "MessageGroupId": f"group-{next(groups)}"}
                for i in range(10)])

        alice.call("CreateQueue", QueueName="crowd")
        for i in range(300):
            bob.call("CreateQueue", QueueName=f"q{i}")
        _, output, _ = case.run("inspect", "--json", f"{case.directory}/d")
        [shard] = [shard["queues"] for shard in json.loads(output)["shards"]
                   if any(queue["name"] == "crowd" for queue in shard["queues"])]
        beside = next(queue["name"] for queue in shard if queue["name"] != "crowd")
        for _ in range(20):  # More than a sixteenth of its memory.
            send_groups(bob, beside)
        error = None
        for _ in range(3000):
            try:
                send_groups(alice, "crowd")
            except Refused as refusal:
                error = refusal
                break
        check(error and error.status == 503
              and "account 111111111111 takes more than its share" in error.message, error)
        for _ in range(20):
            send_groups(bob, beside)


def files_with_secrets_that_everybody_reads_are_named(case):
    path = case.file("s.toml", IN_MEMORY + ACCOUNTS)
    case.directory.chmod(0o755)
    path = str(path)
    subprocess.run(["chmod", "0644", path], check=True)
    with case.serve("--config", path) as server:
        line = server.wait_for_log("holds secrets")
        check(f"everybody on this machine can read {path}" in line, line)
        subprocess.run(["chmod", "0640", path], check=True)
        server.reload("reloaded")
        check(sum("holds secrets" in line for line in server.log) == 1, server.log)
    with case.serve("--config", path) as server:
        _, log = server.stop()
        check("everybody" not in log, log)


def a_policy_for_no_queue_is_accepted_and_the_log_and_the_advice_say_so(case):
    policy = json.dumps({"Statement": {"Effect": "Deny", "Principal": "*", "Action": "sqs:*",
                                       "Resource": "placeholder"}})
    with case.serve_config(IN_MEMORY + ACCOUNTS) as server:
        alice = Client(server.url, ALICE)
        arn = "arn:aws:sqs:us-east-1:111111111111:"
        alice.call("CreateQueue", QueueName="made", Attributes={"Policy": policy})
        line = server.wait_for_log("looks wrong")
        check(arn + "made" in line and "placeholder is not this queue" in line, line)
        alice.call("CreateQueue", QueueName="q")
        alice.call("SetQueueAttributes", QueueUrl="q", Attributes={"Policy": policy})
        check(arn + "q" in server.wait_for_log("looks wrong"))
        read = alice.call("GetQueueAttributes", QueueUrl="q", AttributeNames=["Policy"])
        check(read["Attributes"]["Policy"] == policy, read)
        alice.call("SendMessage", QueueUrl="q", MessageBody="not denied")
        advice = alice.call("StanchionAdvice")["Advice"]
        check([one["Kind"] for one in advice] == ["PolicyWithoutEffect"] * 2, advice)
        check("never applies" in advice[0]["Text"], advice)
        alice.call("SetQueueAttributes", QueueUrl="q", Attributes={
            "Policy": policy.replace("placeholder", arn + "*").replace("sqs:*", "sqs:PurgeQueue")})
        check("AccessDenied" in refused(alice.call, "PurgeQueue", QueueUrl="q").code)
        check(len(alice.call("StanchionAdvice")["Advice"]) == 1)
        check(sum("looks wrong" in line for line in server.stop()[1].splitlines()) == 2)


def a_key_that_is_not_known_lets_nobody_in_and_the_owner_mends_the_policy(case):
    def policy(effect, operator, key):
        return json.dumps({"Statement": {
            "Effect": effect, "Principal": "*", "Action": "sqs:*", "Resource": "*",
            "Condition": {operator: {key: "x"}}}})

    with case.serve_config(IN_MEMORY + ACCOUNTS) as server:
        alice, bob = Client(server.url, ALICE), Client(server.url, BOB)
        url = alice.call("CreateQueue", QueueName="q", Attributes={
            "Policy": policy("Allow", "StringNotEquals", "aws:Sped")})["QueueUrl"]
        check("aws:sped is no key that is known" in server.wait_for_log("looks wrong"))
        check("AccessDenied" in refused(bob.call, "PurgeQueue", QueueUrl=url).code)
        alice.call("SetQueueAttributes", QueueUrl=url, Attributes={
            "Policy": policy("Allow", "StringNotEquals", "s3:prefix")})
        check("always holds" in server.wait_for_log("looks wrong"))
        bob.call("PurgeQueue", QueueUrl=url)
        alice.call("SetQueueAttributes", QueueUrl=url, Attributes={
            "Policy": policy("Deny", "StringEquals", "aws:Sped")})
        check("denies whatever" in server.wait_for_log("looks wrong"))
        check("AccessDenied" in refused(alice.call, "SendMessage", QueueUrl=url,
                                        MessageBody="denied").code)
        alice.call("SetQueueAttributes", QueueUrl=url, Attributes={"Policy": ""})
        alice.call("SendMessage", QueueUrl=url, MessageBody="not denied")


def the_caller_is_named_by_a_variable(case):
    users = "".join(f'[[account.key]]\nid = "AKIA{name.upper()}"\nsecret = "s"\nuser = "{name}"\n'
                    for name in ("carol", "dave"))
    policy = json.dumps({"Version": "2012-10-17", "Statement": {
        "Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage",
        "Resource": "arn:aws:sqs:*:*:${aws:username}-jobs"}})
    with case.serve_config(IN_MEMORY + ACCOUNTS + users) as server:
        url = Client(server.url, ALICE).call("CreateQueue", QueueName="carol-jobs", Attributes={
            "Policy": policy})["QueueUrl"]
        Client(server.url, Key("AKIACAROL", "s")).call("SendMessage", QueueUrl=url, MessageBody="m")
        for other in (Key("AKIADAVE", "s"), BOB):
            check("AccessDenied" in refused(Client(server.url, other).call, "SendMessage",
                                            QueueUrl=url, MessageBody="m").code)


def policies_that_are_set_again_and_again_do_not_fill_the_log(case):
    policy = json.dumps({"Statement": {"Effect": "Deny", "Principal": "*", "Action": "sqs:*",
                                       "Resource": "placeholder"}})
    with case.serve_config(IN_MEMORY) as server:
        client = Client(server.url)
        client.call("CreateQueue", QueueName="q")
        for _ in range(500):
            client.call("SetQueueAttributes", QueueUrl="q", Attributes={"Policy": policy})
        said = sum("looks wrong" in line for line in server.stop()[1].splitlines())
        check(1 <= said <= 100, said)


def a_task_of_a_queue_that_does_not_exist_is_not_found_whose_ever_it_would_be(case):
    with case.serve_config(IN_MEMORY + ACCOUNTS) as server:
        alice, bob = Client(server.url, ALICE), Client(server.url, BOB)
        bob.call("CreateQueue", QueueName="bobs")
        for account, name in (("111111111111", "none"), ("222222222222", "none"),
                              ("222222222222", "bobs"), ("000000000000", "none")):
            handle = base64.b64encode(json.dumps({
                "taskId": "db82b9aa-1a3c-4d1a-9a9e-4f3a4ba4b4b4",
                "sourceArn": f"arn:aws:sqs:us-east-1:{account}:{name}"}).encode()).decode()
            error = refused(alice.call, "CancelMessageMoveTask", TaskHandle=handle)
            check((error.code, error.message) == (
                "ResourceNotFoundException",
                "The resource that you specified for the SourceArn parameter doesn't exist."),
                  f"{account} {name}: {error.code} {error.message}")


def presigned(key, url, parameters, payload):
    """The path and query of a presigned POST."""
    host = urllib.parse.urlsplit(url).netloc
    stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    scope = f"{stamp[:8]}/us-east-1/sqs/aws4_request"
    parameters = {**parameters, "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
                  "X-Amz-Credential": f"{key.id}/{scope}", "X-Amz-Date": stamp,
                  "X-Amz-Expires": "60", "X-Amz-SignedHeaders": "host"}
    query = urllib.parse.urlencode(sorted(parameters.items()), quote_via=urllib.parse.quote)
    canonical = "\n".join(["POST", "/", query, f"host:{host}", "", "host", payload])
    to_sign = "\n".join(["AWS4-HMAC-SHA256", stamp, scope,
                         hashlib.sha256(canonical.encode()).hexdigest()])
    signing = ("AWS4" + key.secret).encode()
    for part in scope.split("/"):
        signing = hmac.new(signing, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(signing, to_sign.encode(), hashlib.sha256).hexdigest()
    return f"/?{query}&X-Amz-Signature={signature}"


def the_body_of_a_presigned_url_changes_nothing(case):
    unsigned = "UNSIGNED-PAYLOAD"
    with case.serve_config(IN_MEMORY + ACCOUNTS) as server:
        client = Client(server.url, ALICE)
        client.call("CreateQueue", QueueName="q")
        target = presigned(ALICE, server.url, {"Action": "ListQueues"}, unsigned)
        for body, status in (("", 200), ("Action=DeleteQueue&QueueUrl=q", 403)):
            connection = client.connection()
            connection.request("POST", target, body=body, headers={
                "X-Amz-Content-Sha256": unsigned,
                "Content-Type": "application/x-www-form-urlencoded"})
            answer = connection.getresponse()
            text = answer.read()
            connection.close()
            check(answer.status == status, text)
        check(b"<Code>InvalidSecurity</Code>" in text, text)
        check(len(client.call("ListQueues")["QueueUrls"]) == 1)


def a_payload_without_a_signature_needs_tls(case):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=x",
                    "-keyout", case.directory / "key.pem", "-out", case.directory / "cert.pem"],
                   check=True, capture_output=True)
    tls = ["--tls-certificate", "cert.pem", "--tls-key", "key.pem"]
    proxy = ["--trust-forwarded"]
    for options, headers, status in (([], {}, 403), ([], {"X-Forwarded-Proto": "https"}, 403),
                                     (proxy, {"X-Forwarded-Proto": "https"}, 200),
                                     (proxy, {"X-Forwarded-Proto": "http"}, 403), (tls, {}, 200)):
        with case.serve_config(IN_MEMORY + ACCOUNTS, *options) as server:
            check(answer_to_unsigned(Client(server.url, ALICE), headers) == status,
                  f"{options} {headers}")


def answer_to_unsigned(client, extra):
    """The status of a call with Authorization whose payload is not signed."""
    host = client.url.netloc
    stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": host, "x-amz-content-sha256": "UNSIGNED-PAYLOAD", "x-amz-date": stamp,
               "x-amz-target": "AmazonSQS.ListQueues"}
    names = ";".join(headers)
    canonical = "\n".join(["POST", "/", "", *(f"{n}:{v}" for n, v in headers.items()), "", names,
                           "UNSIGNED-PAYLOAD"])
    scope = f"{stamp[:8]}/us-east-1/sqs/aws4_request"
    to_sign = "\n".join(["AWS4-HMAC-SHA256", stamp, scope,
                         hashlib.sha256(canonical.encode()).hexdigest()])
    signing = ("AWS4" + client.key.secret).encode()
    for part in scope.split("/"):
        signing = hmac.new(signing, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(signing, to_sign.encode(), hashlib.sha256).hexdigest()
    headers["Authorization"] = (f"AWS4-HMAC-SHA256 Credential={client.key.id}/{scope}, "
                                f"SignedHeaders={names}, Signature={signature}")
    connection = client.connection()
    connection.request("POST", "/", body=json.dumps({}), headers={
        **headers, **extra, "Content-Type": "application/x-amz-json-1.0"})
    status = connection.getresponse().status
    connection.close()
    return status
