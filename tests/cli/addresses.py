"""Regions, hosts and presigned URLs: where a queue is, and under which names."""
import datetime
import hashlib
import hmac
import http.client
import json
import urllib.parse

from case import ACCOUNTS, ALICE, IN_MEMORY, check, refused
from signed_client import Client, Key

ANYBODY = Key("any", "thing")


def call(url, action, host=None, more=None, **parameters):
    """An unsigned call to a server under another name."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"AmazonSQS.{action}",
               **({"Host": host} if host else {}), **(more or {})}
    connection.request("POST", "/", json.dumps(parameters).encode(), headers)
    response = connection.getresponse()
    reply = json.loads(response.read() or b"{}")
    connection.close()
    check(response.status == 200, reply)
    return reply


def names(reply):
    return sorted(url.rsplit("/", 1)[1] for url in reply.get("QueueUrls", []))


def all_regions_are_one_unless_they_are_wanted_apart(case):
    with case.serve_config(IN_MEMORY) as server:
        Client(server.url, ANYBODY, "eu-west-1").call("CreateQueue", QueueName="q")
        check(names(Client(server.url, ANYBODY, "us-west-2").call("ListQueues")) == ["q"])
        arn = Client(server.url).call("GetQueueAttributes", QueueUrl="q",
                                      AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        check(arn == "arn:aws:sqs:us-east-1:000000000000:q", arn)


def arns_name_the_region_that_a_client_is_set_to(case):
    with case.serve_config(IN_MEMORY) as server:
        client = Client(server.url, ANYBODY, "eu-west-1")
        dead, work = (client.call("CreateQueue", QueueName=name)["QueueUrl"]
                      for name in ("dead", "work"))
        theirs, ours = (f"arn:aws:sqs:{region}:000000000000:dead"
                        for region in ("eu-west-1", "us-east-1"))
        client.call("SetQueueAttributes", QueueUrl=work, Attributes={"RedrivePolicy": json.dumps(
            {"deadLetterTargetArn": theirs, "maxReceiveCount": 1})})
        sources = client.call("ListDeadLetterSourceQueues", QueueUrl=dead)
        check(sources == {"queueUrls": [work]}, sources)
        policy = client.call("GetQueueAttributes", QueueUrl=work, AttributeNames=["RedrivePolicy"])
        check(ours in policy["Attributes"]["RedrivePolicy"], policy)
        client.call("StartMessageMoveTask", SourceArn=theirs)
        tasks = client.call("ListMessageMoveTasks", SourceArn=theirs)["Results"]
        check([task["SourceArn"] for task in tasks] == [ours], tasks)


def move_tasks_stay_in_their_region(case):
    with case.serve_config(IN_MEMORY, "--regions") as server:
        west, north = (Client(server.url, ANYBODY, region) for region in ("eu-west-1", "eu-north-1"))
        west.call("CreateQueue", QueueName="dead")
        arn = "arn:aws:sqs:eu-west-1:000000000000:dead"
        check(west.call("ListMessageMoveTasks", SourceArn=arn) == {})
        for action in ("ListMessageMoveTasks", "StartMessageMoveTask"):
            error = refused(north.call, action, SourceArn=arn)
            check((error.status, error.code) == (404, "ResourceNotFoundException"), error)


def regions_that_are_apart_have_queues_of_their_own(case):
    for text, key in ((IN_MEMORY, ANYBODY), (IN_MEMORY + ACCOUNTS, ALICE)):
        with case.serve_config(text, "--regions") as server:
            west = Client(server.url, key, "eu-west-1")
            north = Client(server.url, key, "eu-north-1")
            url = west.call("CreateQueue", QueueName="q")["QueueUrl"]
            check(names(north.call("ListQueues")) == [])
            north.call("CreateQueue", QueueName="q", Attributes={"VisibilityTimeout": "1"})
            for client, region in ((west, "eu-west-1"), (north, "eu-north-1")):
                found = client.call("GetQueueAttributes", QueueUrl=url, AttributeNames=["All"])
                arn = found["Attributes"]["QueueArn"]
                check(arn.startswith(f"arn:aws:sqs:{region}:"), arn)
            west.call("SendMessage", QueueUrl=url, MessageBody="for the west")
            check(north.call("ReceiveMessage", QueueUrl=url) == {})


def a_host_name_says_its_region(case):
    with case.serve_config(IN_MEMORY, "--regions") as server:
        for host in ("sqs.eu-west-1.localhost:9324", "eu-north-1.queue.localhost"):
            url = call(server.url, "CreateQueue", host, QueueName=host.split(":")[0].replace(".", "-"))
            check(url["QueueUrl"].startswith(f"http://{host}/"), url)
        check(names(call(server.url, "ListQueues")) == [])
        west = Client(server.url, ANYBODY, "eu-west-1").call("ListQueues")
        check(names(west) == ["sqs-eu-west-1-localhost"], west)
        north = Client(server.url, ANYBODY, "eu-north-1").call("ListQueues")
        check(names(north) == ["eu-north-1-queue-localhost"], north)


def queue_urls_carry_the_host_that_was_called(case):
    forwarded = {"X-Forwarded-Host": "queues.example.com", "X-Forwarded-Proto": "https"}
    with case.serve_config(IN_MEMORY, "--allowed-hosts", "stanchion, inner") as server:
        for host in ("localhost:1234", "stanchion", "[::1]:9324"):
            url = call(server.url, "CreateQueue", host, QueueName="q")["QueueUrl"]
            check(url == f"http://{host}/000000000000/q", url)
        url = call(server.url, "GetQueueUrl", "inner", forwarded, QueueName="q")["QueueUrl"]
        check(url == "http://inner/000000000000/q", url)
    with case.serve_config(IN_MEMORY, "--trust-forwarded", "--allowed-hosts",
                           "inner,*.example.com") as server:
        url = call(server.url, "CreateQueue", "inner", forwarded, QueueName="q")["QueueUrl"]
        check(url == "https://queues.example.com/000000000000/q", url)


def a_trusted_proxy_says_where_a_caller_is(case):
    policy = {"Statement": {"Effect": "Deny", "Principal": "*", "Action": "sqs:SendMessage",
                            "Resource": "*", "Condition": {
                                "NotIpAddress": {"aws:SourceIp": "192.0.2.0/24"}}}}

    def forwarded(addresses, own_line):
        extra = {"X-Forwarded-For": addresses, "X-Forwarded-Proto": "https"}
        if own_line:  # Of the proxy, as HAProxy adds it.
            extra["x-forwarded-for"] = own_line
        return lambda headers, body: ({**headers, **extra}, body)
    for trusted in (True, False):
        with case.serve_config(IN_MEMORY + ACCOUNTS,
                               f"--trust-forwarded={str(trusted).lower()}") as server:
            alice = Client(server.url, ALICE)
            alice.call("CreateQueue", QueueName="q", Attributes={"Policy": json.dumps(policy)})

            def send(addresses, own_line=None):
                return alice.call("SendMessage", QueueUrl="q", MessageBody="x",
                                  tamper=forwarded(addresses, own_line))
            if trusted:
                send("192.0.2.7")
                send("10.0.0.1, 192.0.2.7")
                for with_port in ("192.0.2.7:4711", "::ffff:192.0.2.7", "[::ffff:192.0.2.7]:4711"):
                    send(with_port)
                send("10.0.0.1", "192.0.2.7")
                for claimed in (("192.0.2.7, 10.0.0.1",), ("192.0.2.7", "10.0.0.1"),
                                ("192.0.2.7", "unknown"), ("192.0.2.7x",)):
                    check(refused(send, *claimed).code == "AccessDeniedException", claimed)
            else:
                check(refused(send, "192.0.2.7").code == "AccessDeniedException")


def presigned(key, host, parameters, age=0, expires=60, region="us-east-1"):
    """The path of a GET that anybody may make until it expires."""
    at = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=age)
    scope = f"{at:%Y%m%d}/{region}/sqs/aws4_request"
    query = {**parameters, "X-Amz-Algorithm": "AWS4-HMAC-SHA256", "X-Amz-SignedHeaders": "host",
             "X-Amz-Credential": f"{key.id}/{scope}", "X-Amz-Date": f"{at:%Y%m%dT%H%M%SZ}",
             "X-Amz-Expires": str(expires)}
    encoded = "&".join(sorted(f"{urllib.parse.quote(name, '-_.~')}={urllib.parse.quote(value, '-_.~')}"
                              for name, value in query.items()))
    canonical = f"GET\n/\n{encoded}\nhost:{host}\n\nhost\n{hashlib.sha256(b'').hexdigest()}"
    to_sign = "\n".join(["AWS4-HMAC-SHA256", query["X-Amz-Date"], scope,
                         hashlib.sha256(canonical.encode()).hexdigest()])
    signing_key = ("AWS4" + key.secret).encode()
    for part in scope.split("/"):
        signing_key = hmac.new(signing_key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(signing_key, to_sign.encode(), hashlib.sha256).hexdigest()
    return f"/?{encoded}&X-Amz-Signature={signature}"


def get(url, path):
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    connection.request("GET", path)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text


def presigned_urls_work_until_they_expire(case):
    with case.serve_config(IN_MEMORY + ACCOUNTS) as server:
        host = server.url.removeprefix("http://")
        create = {"Action": "CreateQueue", "QueueName": "q"}
        status, text = get(server.url, presigned(ALICE, host, create))
        check(status == 200 and f"<QueueUrl>{server.url}/111111111111/q</QueueUrl>" in text, text)
        status, text = get(server.url, presigned(ALICE, host, create, age=3000, expires=3600))
        check(status == 200, text)
        for path in (presigned(ALICE, host, create, age=61),
                     presigned(ALICE, host, create, age=-1000),
                     presigned(ALICE, host, create).replace("QueueName=q", "QueueName=r"),
                     presigned(Key(ALICE.id, "wrong"), host, create)):
            status, text = get(server.url, path)
            check(status == 403 and "<Code>SignatureDoesNotMatch</Code>" in text, text)
        status, text = get(server.url, presigned(ALICE, host, create, expires=604801))
        check(status == 400 and "<Code>IncompleteSignature</Code>" in text, text)
    with case.serve_config(IN_MEMORY, "--regions") as server:
        host = server.url.removeprefix("http://")
        # A signature in the URL proves nothing without accounts, and a page may know the URL.
        status, text = get(server.url, presigned(ANYBODY, host, create, region="eu-west-1"))
        check(status == 403 and "<Code>AccessDenied</Code>" in text, text)
        west = Client(server.url, ANYBODY, "eu-west-1")
        west.call("CreateQueue", QueueName="q")
        status, text = get(server.url, presigned(ANYBODY, host, {"Action": "ListQueues"},
                                                 region="eu-west-1"))
        check(status == 200 and "/000000000000/q</QueueUrl>" in text, text)


def without_accounts_the_server_answers_to_its_own_names(case):
    def status_of(server, host):
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=30)
        connection.request("POST", "/", b"{}", {
            "Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS.ListQueues",
            "Host": host})
        response = connection.getresponse()
        response.read()
        connection.close()
        return response.status

    every = ("localhost", "stanchion", "192.0.2.7", "queues.internal", "queues.example.com",
             "a.example.net", "evil.example")
    for options, known in (
            ((), "localhost"),
            (("--allowed-hosts", "stanchion,*.example.net"), "localhost stanchion a.example.net"),
            (("--public-url", "https://queues.example.com:9/sqs"), "localhost queues.example.com"),
            (("--insecure",), "localhost stanchion 192.0.2.7 queues.internal"),
            (("--allowed-hosts", "*"), " ".join(every))):
        with case.serve_config(IN_MEMORY, *options) as server:
            got = [host for host in every if status_of(server, host) == 200]
            check(got == known.split(), (options, got))
    with case.serve_config(IN_MEMORY + ACCOUNTS) as server:  # With accounts the signature decides.
        check(all(status_of(server, host) == 403 for host in every))
        Client(server.url, ALICE).call("ListQueues")
    status, _, errors = case.run("serve", "--in-memory", "--allowed-hosts", "stanchion:9324")
    check(status == 2 and "--allowed-hosts: \"stanchion:9324\" is not a name" in errors, errors)
