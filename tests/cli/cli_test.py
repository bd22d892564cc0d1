#!/usr/bin/env python3
"""Starts the real program with right and wrong settings and looks at what it does.

    cli_test.py --binary build/release/stanchion [NAME...]

Standard library only. The last line says how many tests passed and failed.
"""
import datetime
import json
import shutil
import ssl
import subprocess
import sys

import addresses
import counted_memory
import rights
import robustness
import usage
import virtual_time
from case import ACCOUNTS, ALICE, BOB, IN_MEMORY, check, refused, run_tests, tests_of
from server import write
from signed_client import Client, Key

# Settings.

def wrong_settings_stop_the_start_and_say_where(case):
    bad = case.file("bad.toml", '[server]\nlistne = "127.0.0.1:0"\n')
    status, output, errors = case.run("serve", "--config", bad)
    check(status == 2 and output == "", (status, output))
    check(errors == f"stanchion: {bad}:2: server.listne: there is no such setting; did you mean "
                    "listen?\n", errors)
    status, _, errors = case.run("serve", environment={"STANCHION_THREADS": "x"})
    check(status == 2 and errors.startswith("stanchion: STANCHION_THREADS: "), errors)
    status, _, errors = case.run("serve", "--memory", "1XB")
    check(status == 2 and errors.startswith("stanchion: --memory: "), errors)
    status, _, errors = case.run("serve", "--config", "nowhere.toml")
    check(status == 2 and "cannot read nowhere.toml" in errors, errors)
    status, _, errors = case.run("serve", "--no-such-flag")
    check(status == 2 and "--no-such-flag" in errors, errors)
    status, _, errors = case.run("serve", "--in-memory", "--data", "d")
    check(status == 2, errors)


def other_machines_are_let_in_only_with_accounts_or_insecure(case):
    status, _, errors = case.run("serve", "--in-memory", "--listen", "0.0.0.0:0")
    check(status == 2 and errors.startswith("stanchion: --listen: 0.0.0.0 can be reached"), errors)
    with case.serve("--in-memory", "--threads", "1", "--listen", "0.0.0.0:0", "--insecure"):
        pass
    with case.serve_config(IN_MEMORY + ACCOUNTS, "--listen", "0.0.0.0:0"):
        pass
    status, _, errors = case.run("serve", "--config", case.file("s.toml", IN_MEMORY + ACCOUNTS),
                                 "--insecure")
    check(status == 2 and "--insecure: accounts are configured" in errors, errors)


def the_file_in_the_working_directory_is_found(case):
    case.file("stanchion.toml", IN_MEMORY + 'region = "xx-found-1"\n')
    status, output, errors = case.run("serve", "--print-config")
    check(status == 0 and 'region = "xx-found-1"\n' in output, output + errors)
    status, output, _ = case.run("serve", "--print-config", "--region", "xx-flag-1",
                                 environment={"STANCHION_REGION": "xx-env-1"})
    check('region = "xx-flag-1"\n' in output, output)
    status, output, _ = case.run("serve", "--print-config",
                                 environment={"STANCHION_REGION": "xx-env-1"})
    check('region = "xx-env-1"\n' in output, output)


def printed_settings_hide_secrets_and_do_not_pass_for_real_ones(case):
    path = case.file("s.toml", IN_MEMORY + ACCOUNTS)
    status, output, errors = case.run("serve", "--config", path, "--print-config")
    check(status == 0, errors)
    check(ALICE.secret not in output and BOB.secret not in output, output)
    check(ALICE.id in output, output)
    printed = case.file("printed.toml", output)
    lines = output.splitlines()
    for arguments in (["check-config", printed], ["serve", "--config", printed]):
        status, said, errors = case.run(*arguments)
        check(status == 2 and said == "", said)
        check(errors.splitlines() == [
            f"stanchion: {printed}:{at + 1}: account.key.secret: this is what --print-config shows "
            "instead of a secret; put the secret back"
            for at, line in enumerate(lines) if line == 'secret = "(hidden)"'], errors)
    for key in (ALICE, BOB):
        output = output.replace('"(hidden)"', f'"{key.secret}"', 1)
    # The comment contains the word without quotes.
    status, said, errors = case.run("check-config", case.file("put-back.toml", output))
    check(status == 0 and said.endswith("is fine: 2 accounts, 0 queues\n"), errors)


def printed_settings_without_secrets_can_be_read_again(case):
    secret = case.file("alice.secret", ALICE.secret + "\n")
    path = case.file("s.toml", IN_MEMORY + ACCOUNTS[:ACCOUNTS.index("[[account]]", 3)].replace(
        f'secret = "{ALICE.secret}"', f'secret_file = "{secret}"') +
        '[[queue]]\nname = "q"\nattributes = { DelaySeconds = 5 }\n')
    status, output, errors = case.run("serve", "--config", path, "--print-config")
    check(status == 0 and "hidden" not in output, output + errors)
    again = case.file("again.toml", output)
    check(case.run("check-config", again)[0] == 0, output)
    check(case.run("serve", "--config", again, "--print-config")[1] == output, output)


def check_config_tells_every_problem(case):
    status, output, errors = case.run("check-config", case.file(
        "b.toml", '[server]\nstrict = 1\n[log]\nlevel = "x"\n[[queue]]\nnam = "q"\n'))
    lines = errors.splitlines()
    check(status == 2 and output == "" and len(lines) == 4, errors)
    check("b.toml:2: server.strict: must be true or false, not a number" in errors, errors)
    status, _, errors = case.run("check-config", case.file("c.toml", """
[[account]]
id = "123456789012"
[[account.key]]
id = "A"
secret = "s"
[[queue]]
name = "q"
[queue.attributes]
DelaySeconds = 1
VisibilityTimeout = 43201
"""))
    check(status == 2 and "c.toml:11: queue q: Invalid value for the parameter VisibilityTimeout."
          in errors, errors)


def limits_of_the_settings_hold(case):
    with case.serve_config(IN_MEMORY + '[limits]\nbody_bytes = "64KiB"\n') as server:
        client = Client(server.url)
        url = client.call("CreateQueue", QueueName="q")["QueueUrl"]
        client.call("SendMessage", QueueUrl=url, MessageBody="x" * 60000)
        error = refused(client.call, "SendMessage", QueueUrl=url, MessageBody="x" * 70000)
        check(error.status == 413, error)


def public_url_pins_queue_urls(case):
    with case.serve("--in-memory", "--threads", "1", "--listen", "127.0.0.1:0", "--public-url",
                    "https://queues.example.com") as server:
        url = Client(server.url).call("CreateQueue", QueueName="q")["QueueUrl"]
        check(url == "https://queues.example.com/000000000000/q", url)


# Accounts.

def signed_calls_are_taken_and_others_refused(case):
    with case.serve_config(IN_MEMORY + ACCOUNTS) as server:
        alice = Client(server.url, ALICE)
        url = alice.call("CreateQueue", QueueName="q")["QueueUrl"]
        check(url.endswith("/111111111111/q"), url)
        error = refused(Client(server.url).call, "ListQueues")
        check((error.status, error.code) == (403, "MissingAuthenticationTokenException"), error)
        error = refused(Client(server.url, Key("AKIANOBODY", "x")).call, "ListQueues")
        check((error.status, error.code) == (403, "UnrecognizedClientException"), error)
        error = refused(Client(server.url, Key(ALICE.id, "wrong")).call, "ListQueues")
        check((error.status, error.code) == (403, "InvalidSignatureException"), error)
        other = Client(server.url, BOB).call("ListQueues")
        check(not other.get("QueueUrls"), other)


def skewed_clocks_and_tampered_calls_are_refused(case):
    with case.serve_config(IN_MEMORY + ACCOUNTS) as server:
        for minutes in (-16, 16):
            late = Client(server.url, ALICE, skew=datetime.timedelta(minutes=minutes))
            error = refused(late.call, "ListQueues")
            check((error.status, error.code) == (403, "InvalidSignatureException"), error)
        Client(server.url, ALICE, skew=datetime.timedelta(minutes=-14)).call("ListQueues")
        alice = Client(server.url, ALICE)
        error = refused(alice.call, "CreateQueue", QueueName="abc",
                        tamper=lambda headers, body: (headers, body.replace(b"abc", b"abd")))
        check((error.status, error.code) == (403, "InvalidSignatureException"), error)
        error = refused(alice.call, "ListQueues",
                        tamper=lambda headers, body: (
                            {**headers, "X-Amz-Target": "AmazonSQS.PurgeQueue"}, body))
        check((error.status, error.code) == (403, "InvalidSignatureException"), error)


def tokens_and_expiry_are_checked(case):
    soon = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1))
    text = IN_MEMORY + f"""
[[account]]
id = "111111111111"
[[account.key]]
id = "ASIATOKEN"
secret = "s1"
session_token = "the token"
expires = {soon.strftime("%Y-%m-%dT%H:%M:%SZ")}
[[account.key]]
id = "AKIAOLD"
secret = "s2"
expires = 2020-01-01T00:00:00Z
"""
    with case.serve_config(text) as server:
        Client(server.url, Key("ASIATOKEN", "s1", "the token")).call("ListQueues")
        for token in (None, "another"):
            error = refused(Client(server.url, Key("ASIATOKEN", "s1", token)).call, "ListQueues")
            check((error.status, error.code) == (403, "UnrecognizedClientException"), error)
        error = refused(Client(server.url, Key("AKIAOLD", "s2")).call, "ListQueues")
        check((error.status, error.code) == (403, "ExpiredTokenException"), error)


def keys_rotate_by_reload_without_a_restart(case):
    path = case.file("s.toml", IN_MEMORY + ACCOUNTS)
    secret = case.file("new.secret", "fresh secret\n")
    with case.serve("--config", path) as server:
        alice = Client(server.url, ALICE)
        alice.call("CreateQueue", QueueName="kept")
        both = IN_MEMORY + ACCOUNTS + (f'[[account.key]]\nid = "AKIANEW"\nsecret_file = "{secret}"\n')
        write(path, both)
        line = server.reload("reloaded")
        check("reloaded: 2 accounts with 3 keys" in line, line)
        new = Client(server.url, Key("AKIANEW", "fresh secret"))
        new.call("ListQueues")
        alice.call("ListQueues")
        write(path, both.replace(f'[[account.key]]\nid = "{BOB.id}"\nsecret = "{BOB.secret}"\n', ""))
        server.reload("reloaded")
        error = refused(Client(server.url, BOB).call, "ListQueues")
        check(error.code == "UnrecognizedClientException", error)
        new.call("ListQueues")
        check(len(alice.call("ListQueues")["QueueUrls"]) == 1)


def a_bad_file_leaves_the_old_accounts(case):
    path = case.file("s.toml", IN_MEMORY + ACCOUNTS)
    with case.serve("--config", path) as server:
        write(path, IN_MEMORY + "[[account]]\nid = 5\n")
        server.reload("not reloaded")
        Client(server.url, ALICE).call("ListQueues")
        write(path, IN_MEMORY)
        line = server.reload("not reloaded")
        check("removing all accounts needs a restart" in line, line)
        Client(server.url, ALICE).call("ListQueues")
        write(path, IN_MEMORY.replace("threads = 1", "threads = 2") + ACCOUNTS)
        line = server.reload("takes effect")
        check("server.threads changed, which takes effect with a restart" in line, line)
        _, log = server.stop()
        check(f"error {path}:6: account.id: must be a string, not a number" in log, log)


def other_accounts_need_a_policy(case):
    with case.serve_config(IN_MEMORY + ACCOUNTS) as server:
        alice, bob = Client(server.url, ALICE), Client(server.url, BOB)
        url = alice.call("CreateQueue", QueueName="shared")["QueueUrl"]

        def send():
            return bob.call("SendMessage", QueueUrl=url, MessageBody="hello")

        check(refused(send).code == "AccessDeniedException")
        alice.call("AddPermission", QueueUrl=url, Label="bob-sends", AWSAccountIds=["222222222222"],
                   Actions=["SendMessage"])
        send()
        error = refused(bob.call, "ReceiveMessage", QueueUrl=url)
        check((error.status, error.code) == (403, "AccessDeniedException"), error)
        alice.call("RemovePermission", QueueUrl=url, Label="bob-sends")
        check(refused(send).code == "AccessDeniedException")
        policy = {"Version": "2012-10-17",
                  "Statement": [{"Effect": "Allow", "Principal": {"AWS": "222222222222"},
                                 "Action": ["sqs:SendMessage", "sqs:ReceiveMessage"],
                                 "Resource": "arn:aws:sqs:us-east-1:111111111111:shared"},
                                {"Effect": "Deny", "Principal": "*", "Action": "sqs:PurgeQueue",
                                 "Resource": "*"}]}
        alice.call("SetQueueAttributes", QueueUrl=url, Attributes={"Policy": json.dumps(policy)})
        send()
        got = bob.call("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10,
                       AttributeNames=["SenderId"])["Messages"]
        check({m["Attributes"]["SenderId"] for m in got} == {"222222222222"}, got)
        check(refused(alice.call, "PurgeQueue", QueueUrl=url).code == "AccessDeniedException")
        error = refused(bob.call, "DeleteQueue", QueueUrl=url)
        check(error.code == "AccessDeniedException", error)


def messages_are_not_moved_into_queues_of_others(case):
    with case.serve_config(IN_MEMORY + ACCOUNTS) as server:
        alice, bob = Client(server.url, ALICE), Client(server.url, BOB)
        bob.call("CreateQueue", QueueName="bobs")
        theirs = "arn:aws:sqs:us-east-1:222222222222:bobs"
        mine = "arn:aws:sqs:us-east-1:111111111111:dead"
        alice.call("CreateQueue", QueueName="dead")

        def redrive(target):
            policy = {"deadLetterTargetArn": target, "maxReceiveCount": 1}
            return {"RedrivePolicy": json.dumps(policy)}
        error = refused(alice.call, "CreateQueue", QueueName="s", Attributes=redrive(theirs))
        check("owner should be same as the source" in error.message, error)
        alice.call("CreateQueue", QueueName="s", Attributes=redrive(mine))
        for action, parameters in (
                ("StartMessageMoveTask", {"SourceArn": mine, "DestinationArn": theirs}),
                ("StartMessageMoveTask", {"SourceArn": theirs}),
                ("ListMessageMoveTasks", {"SourceArn": theirs})):
            error = refused(alice.call, action, **parameters)
            check((error.status, error.code) == (403, "AccessDeniedException"), error)
        task = alice.call("StartMessageMoveTask", SourceArn=mine)["TaskHandle"]
        error = refused(bob.call, "CancelMessageMoveTask", TaskHandle=task)
        check((error.status, error.code) == (404, "ResourceNotFoundException"), error)


def a_policy_that_locks_its_owner_out_is_undone_by_the_file(case):
    text = IN_MEMORY.replace("in_memory = true", 'data = "d"') + ACCOUNTS
    policy = {"Statement": {"Effect": "Deny", "Principal": "*", "Action": "*", "Resource": "*"}}
    with case.serve_config(text) as server:
        alice = Client(server.url, ALICE)
        url = alice.call("CreateQueue", QueueName="locked")["QueueUrl"]
        alice.call("SetQueueAttributes", QueueUrl=url, Attributes={"Policy": json.dumps(policy)})
        error = refused(alice.call, "SetQueueAttributes", QueueUrl=url, Attributes={"Policy": ""})
        check(error.code == "AccessDeniedException", error)
    text += '[[queue]]\nname = "locked"\naccount = "111111111111"\nattributes = { Policy = "" }\n'
    with case.serve_config(text) as server:
        Client(server.url, ALICE).call("SendMessage", QueueUrl="locked", MessageBody="free again")


# Queues at the start.

QUEUES = """
[[queue]]
name = "work"
[queue.attributes]
VisibilityTimeout = 77
[queue.tags]
team = "billing"
[queue.redrive]
dead_letter = "work-dead"
max_receive_count = 4

[[queue]]
name = "work-dead"

[[queue]]
name = "jobs.fifo"
attributes = { ContentBasedDeduplication = true }
"""


def queues_are_there_when_the_server_is_ready(case):
    on_disk = IN_MEMORY.replace("in_memory = true", 'data = "d"')
    with case.serve_config(on_disk + QUEUES) as server:
        client = Client(server.url)
        urls = client.call("ListQueues")["QueueUrls"]
        check(sorted(u.rsplit("/", 1)[1] for u in urls) == ["jobs.fifo", "work", "work-dead"], urls)
        url = next(u for u in urls if u.endswith("/work"))
        got = client.call("GetQueueAttributes", QueueUrl=url, AttributeNames=["All"])["Attributes"]
        check(got["VisibilityTimeout"] == "77", got)
        redrive = json.loads(got["RedrivePolicy"])
        check(redrive == {"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:work-dead",
                          "maxReceiveCount": 4}, redrive)
        check(client.call("ListQueueTags", QueueUrl=url)["Tags"] == {"team": "billing"})
        client.call("SendMessage", QueueUrl=url, MessageBody="kept")
        client.call("SetQueueAttributes", QueueUrl=url, Attributes={"DelaySeconds": "3"})
        _, log = server.stop()
        check("queues of the settings: 3 created, 1 changed" in log, log)
    with case.serve_config(on_disk + QUEUES.replace("= 77", "= 78")) as server:
        client = Client(server.url)
        got = client.call("GetQueueAttributes", QueueUrl=url, AttributeNames=["All"])["Attributes"]
        check((got["VisibilityTimeout"], got["DelaySeconds"]) == ("78", "3"), got)
        check(got["ApproximateNumberOfMessages"] == "1", got)
        _, log = server.stop()
        check("queues of the settings: 0 created, 1 changed" in log, log)


def a_queue_that_cannot_be_made_stops_the_start(case):
    text = IN_MEMORY + '[[queue]]\nname = "q"\n[queue.redrive]\ndead_letter = "gone"\n' \
        "max_receive_count = 2\n"
    status, output, errors = case.run("serve", "--config", case.file("s.toml", text))
    check(status == 1 and output == "", (status, output))
    check("s.toml:8: queue q: attributes RedrivePolicy: " in errors and "does not exist" in errors,
          errors)


def queues_belong_to_the_accounts_that_are_named(case):
    text = IN_MEMORY + ACCOUNTS + '[[queue]]\nname = "q"\naccount = "222222222222"\n'
    with case.serve_config(text) as server:
        check(len(Client(server.url, BOB).call("ListQueues")["QueueUrls"]) == 1)
        check(not Client(server.url, ALICE).call("ListQueues").get("QueueUrls"))


def exported_queues_make_the_same_queues_again(case):
    with case.serve_config(IN_MEMORY + QUEUES) as server:
        status, first, errors = case.run("export", "--endpoint", server.url)
        check(status == 0, errors)
    with case.serve_config(IN_MEMORY + first) as server:
        status, second, errors = case.run("export", "--endpoint", server.url)
        check(status == 0 and first == second, errors + first + second)
    check('dead_letter = "work-dead"' in first and 'team = "billing"' in first, first)
    status, _, errors = case.run("export", "--endpoint", "http://127.0.0.1:1")
    check(status == 1 and "cannot connect to 127.0.0.1:1" in errors, errors)


def export_signs_its_calls(case):
    text = IN_MEMORY + ACCOUNTS + '[[queue]]\nname = "q"\naccount = "111111111111"\n'
    with case.serve_config(text) as server:
        keys = {"AWS_ACCESS_KEY_ID": ALICE.id, "AWS_SECRET_ACCESS_KEY": ALICE.secret}
        status, output, errors = case.run("export", "--endpoint", server.url, environment=keys)
        check(status == 0 and 'name = "q"' in output, errors)
        status, output, errors = case.run("export", "--endpoint", server.url)
        check(status == 1 and output == "" and "ListQueues" in errors, errors)


def an_elasticmq_file_becomes_a_server(case):
    conf = case.file("elasticmq.conf", """
        include classpath("application.conf")
        rest-sqs { bind-port = 0, bind-hostname = "127.0.0.1" }
        aws { region = eu-west-1, accountId = 123456789012 }
        queues {
          in { defaultVisibilityTimeout = 2 minutes
               deadLettersQueue { name = "in-dead", maxReceiveCount = 3 } }
          in-dead {}
          jobs { fifo = true, tags { a = b } }
        }""")
    status, toml, errors = case.run("import", conf)
    check(status == 0 and errors == "", errors)
    with case.serve_config(toml, "--in-memory", "--threads", "1") as server:
        urls = Client(server.url).call("ListQueues")["QueueUrls"]
        check(sorted(u.split("/", 3)[3] for u in urls) ==
              ["123456789012/in", "123456789012/in-dead", "123456789012/jobs.fifo"], urls)
    status, _, errors = case.run("import", case.file("bad.conf", "queues {\n"))
    check(status == 1 and "bad.conf: line 2: a } is missing" in errors, errors)


# TLS, health, log.

def make_certificate(case, name, *more):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                    *more, "-keyout", case.directory / "key.pem", "-out", case.directory / "cert.pem"],
                   check=True, capture_output=True)


def served_certificate(url):
    host, port = url.split("//")[1].rsplit(":", 1)
    return ssl.get_server_certificate((host, int(port)))


def certificates_are_renewed_by_reload(case):
    make_certificate(case, "first.example.com")
    with case.serve("--in-memory", "--threads", "1", "--listen", "127.0.0.1:0", "--tls-certificate",
                    "cert.pem", "--tls-key", "key.pem") as server:
        check(server.url.startswith("https://"), server.url)
        url = Client(server.url).call("CreateQueue", QueueName="q")["QueueUrl"]
        check(url.startswith("https://"), url)
        first = served_certificate(server.url)
        check(first == (case.directory / "cert.pem").read_text(), first)
        make_certificate(case, "second.example.com")
        server.reload("reloaded")
        second = served_certificate(server.url)
        check(second != first and second == (case.directory / "cert.pem").read_text(), second)
        write(case.directory / "cert.pem", "nonsense")
        server.reload("not reloaded")
        check(served_certificate(server.url) == second)
        status, output, errors = case.run("health", "--url", server.url, "--no-verify")
        check(status == 0 and json.loads(output)["status"] == "ready", errors)
    status, _, errors = case.run("serve", "--in-memory", "--listen", "127.0.0.1:0",
                                 "--tls-certificate", "cert.pem", "--tls-key", "key.pem")
    check(status == 1 and "cert.pem" in errors, errors)


def callers_verify_the_server_unless_told_otherwise(case):
    make_certificate(case, "here", "-addext", "subjectAltName=IP:127.0.0.1")
    with case.serve("--in-memory", "--threads", "1", "--listen", "127.0.0.1:0", "--tls-certificate",
                    "cert.pem", "--tls-key", "key.pem") as server:
        calls = (["health", "--url", server.url], ["export", "--endpoint", server.url])
        by_name = server.url.replace("127.0.0.1", "localhost")
        for call in calls:
            for trust in (["--ca", "cert.pem"], ["--no-verify"]):
                status, _, errors = case.run(*call, *trust)
                check(status == 0, f"{call} {trust}: {errors}")
            check(case.run(*call, environment={"SSL_CERT_FILE": "cert.pem"})[0] == 0, call)
            status, output, errors = case.run(*call)
            check(status == 1 and output == "" and "the server's certificate is not trusted: "
                  "self-signed certificate. Name the file of its authority with --ca" in errors,
                  errors)
            status, _, errors = case.run(call[0], call[1], by_name, "--ca", "cert.pem")
            check(status == 1 and "not trusted: hostname mismatch" in errors, errors)
            for wrong in ("key.pem", "nowhere.pem", "/"):
                status, _, errors = case.run(*call, "--ca", wrong)
                check(status == 1 and f"cannot take the certificates in {wrong}" in errors, errors)
        # This machine's own server is called by its address, which its certificate need not
        # contain.
        local = {"STANCHION_LISTEN": server.url.removeprefix("https://"),
                 "STANCHION_TLS_CERTIFICATE": "cert.pem", "STANCHION_TLS_KEY": "key.pem"}
        check(case.run("health", environment=local)[0] == 0)
        check(case.run("health", "--ca", "cert.pem", environment=local)[0] == 0)
        make_certificate(case, "another")
        check(case.run("health", environment=local)[0] == 0)
        check(case.run("health", "--ca", "cert.pem", environment=local)[0] == 1)


def health_says_whether_the_server_is_ready(case):
    with case.serve("--in-memory", "--threads", "1", "--listen", "127.0.0.1:0") as server:
        status, output, _ = case.run("health", "--url", server.url)
        check(status == 0 and json.loads(output)["status"] == "ready", output)
        listen = server.url.removeprefix("http://")
        status, _, errors = case.run("health", environment={"STANCHION_LISTEN": listen})
        check(status == 0, errors)
    status, output, errors = case.run("health", "--url", server.url)
    check(status == 1 and output == "" and "cannot connect" in errors, errors)
    with case.serve("--in-memory", "--threads", "1", "--listen", "127.0.0.1:0") as server:
        for trust in ([], ["--no-verify"]):
            status, _, errors = case.run("health", "--url", server.url.replace("http", "https"), *trust)
            check(status == 1 and "the server does not speak TLS" in errors, errors)
    status, _, errors = case.run("health", "--url", "nonsense")
    check(status == 1 and "is no URL" in errors, errors)


def a_unix_socket_can_be_listened_on(case):
    path = str(case.directory / "s.sock")
    with case.serve("--in-memory", "--threads", "1", "--unix-socket", path) as server:
        check(server.url == "unix:" + path, server.url)
        status, _, errors = case.run("health", "--url", server.url)
        check(status == 0, errors)


def the_access_log_has_calls_and_no_secrets(case):
    text = IN_MEMORY + ACCOUNTS + '[log]\naccess = true\nlevel = "debug"\n'
    with case.serve_config(text) as server:
        alice = Client(server.url, Key(ALICE.id, ALICE.secret))
        url = alice.call("CreateQueue", QueueName="q")["QueueUrl"]
        alice.call("SendMessage", QueueUrl=url, MessageBody="body-of-the-message")
        refused(Client(server.url, Key(ALICE.id, "not-the-secret")).call, "ListQueues")
        signature = []

        def remember(headers, body):
            signature.append(headers["Authorization"].split("Signature=")[1])
            return headers, body
        alice.call("ListQueues", tamper=remember)
        server.reload("reloaded")
        status, log = server.stop()
    check(status == 0, log)
    check("access peer=127.0.0.1 account=111111111111 action=SendMessage queue=q status=200" in log,
          log)
    check("account=- action=- queue=- status=403 error=SignatureDoesNotMatch" in log, log)
    for secret in (ALICE.secret, BOB.secret, "body-of-the-message", "AWS4-HMAC", signature[0]):
        check(secret not in log, f"{secret} is in the log: {log}")


def the_log_can_be_json(case):
    text = IN_MEMORY + '[log]\naccess = true\nformat = "json"\n'
    with case.serve_config(text) as server:
        Client(server.url).call("CreateQueue", QueueName="q")
        _, log = server.stop()
    lines = [json.loads(line) for line in log.splitlines()]
    calls = [line for line in lines if line.get("event") == "access"]
    check(len(calls) == 1 and calls[0]["action"] == "CreateQueue", log)
    check(calls[0]["status"] == 200 and calls[0]["queue"] == "q", log)
    check(all(datetime.datetime.fromisoformat(line["time"].replace("Z", "+00:00"))
              for line in lines), log)


def the_first_lines_stay_as_scripts_know_them(case):
    with case.serve("--in-memory", "--threads", "1", "--listen", "127.0.0.1:0") as server:
        status, log = server.stop()
    check(status == 0 and log == "", log)
    check(len(server.output) == 4 and server.output[0].startswith("stanchion ") and
          server.output[1].startswith("try: ") and
          server.output[2].startswith("ready http://127.0.0.1:") and
          server.output[3] == "stopping\n", server.output)
    with case.serve("--in-memory", "--threads", "1", "--listen", "0.0.0.0:0", "--insecure") as server:
        server.stop()
    check(" --endpoint-url http://127.0.0.1:" in server.output[1], server.output)
    check(server.output[2].startswith("ready http://0.0.0.0:"), server.output)


def try_the_line_of(case, server):
    """The output of the command to try, in a shell without any variables."""
    return subprocess.run(["sh", "-c", server.output[1].removeprefix("try: ")], text=True,
                          capture_output=True, timeout=60, check=False, cwd="/",
                          env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(case.directory)})


def the_line_to_try_works_as_it_stands(case):
    make_certificate(case, "queues.example.com")
    here = ["--in-memory", "--threads", "1", "--listen", "127.0.0.1:0"]
    tls = ["--tls-certificate", "cert.pem", "--tls-key", "key.pem"]
    in_file = ACCOUNTS.replace(f'secret = "{BOB.secret}"', 'secret_file = "bob\'s secret"')
    case.file("bob's secret", BOB.secret + "\n")
    case.file("s.toml", IN_MEMORY + ACCOUNTS)
    case.file("in-file.toml", IN_MEMORY + in_file)
    # With `aws` where it is installed, without accounts and with a secret in a file.
    if shutil.which("aws"):
        for arguments, account in ((here, "000000000000"), ([*here, *tls], "000000000000"),
                                   (["--config", "in-file.toml"], "222222222222")):
            with case.serve(*arguments) as server:
                done = try_the_line_of(case, server)
                check(done.returncode == 0 and f"/{account}/hello" in done.stdout,
                      (server.output, done))
    for arguments in (["--config", "s.toml"], ["--config", "s.toml", *tls],
                      ["--in-memory", "--threads", "1", "--unix-socket", "socket"]):
        with case.serve(*arguments) as server:
            done = try_the_line_of(case, server)
            check(done.returncode == 0 and "ready" in done.stdout, (server.output, done))
            check(ALICE.secret not in server.output[1], server.output)


def start_up_reports_ready_to_a_service_manager(case):
    import socket
    path = str(case.directory / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(path)
        listener.settimeout(30)
        with case.serve("--in-memory", "--threads", "1", "--listen", "127.0.0.1:0",
                        environment={"NOTIFY_SOCKET": path}):
            check(listener.recv(100) == b"READY=1")
        check(listener.recv(100) == b"STOPPING=1")


# Looking into the data.

def inspected(here, *arguments):
    status, output, errors = here.run("inspect", "--json", *arguments)
    check(errors == "", errors)
    return status, json.loads(output)


def inspect_prints_json_with_the_fields_that_are_documented(case):
    data = str(case.directory / "d")
    with case.serve("--data", data, "--threads", "2", "--listen", "127.0.0.1:0") as server:
        client = Client(server.url)
        for name in ("one", "two.fifo"):
            client.call("CreateQueue", QueueName=name,
                        Attributes={"FifoQueue": "true"} if name.endswith(".fifo") else {})
        client.call("SendMessage", QueueUrl="one", MessageBody="a")
        client.call("SendMessage", QueueUrl="one", MessageBody="bb", DelaySeconds=900)
        client.call("SendMessage", QueueUrl="two.fifo", MessageBody="ccc", MessageGroupId="g",
                    MessageDeduplicationId="d")
        client.call("ReceiveMessage", QueueUrl="two.fifo")
        running = inspected(case, data)
    status, found = inspected(case, data)
    check(status == 0 and running[0] == 0 and found["sound"] is True, found)
    check(set(found) == {"data", "fleet", "shard_count", "shards", "sound"}, found)
    check(found["data"] == data and found["fleet"] is None, found)
    check(found["shard_count"] == len(found["shards"]) == 2, found)
    for index, shard in enumerate(found["shards"]):
        check(set(shard) == {"shard", "sound", "problems", "store", "segments", "records",
                             "last_record", "holdings", "queues"}, shard)
        check(shard["shard"] == index and shard["sound"] and shard["problems"] == [], shard)
        check(set(shard["store"]) == {"files", "bytes", "entries"}, shard)
        check(set(shard["last_record"]) == {"at", "ahead_seconds"}, shard)
        for segment in shard["segments"]:
            check(set(segment) == {"name", "first_record", "records", "commits", "used_bytes",
                                   "file_bytes", "torn_bytes", "problem"}, segment)
    queues = {queue["name"]: queue for shard in found["shards"] for queue in shard["queues"]}
    one, two = queues["one"], queues["two.fifo"]
    check(set(one) == {"name", "account", "region", "fifo", "visible", "in_flight", "delayed",
                       "oldest"}, one)
    check((one["visible"], one["in_flight"], one["delayed"], one["fifo"]) == (1, 0, 1, False), one)
    check((two["visible"], two["in_flight"], two["delayed"], two["fifo"]) == (0, 1, 0, True), two)
    check(one["account"] == "000000000000" and one["region"] == "us-east-1", one)
    _, found = inspected(case, data, "--messages", "--facts")
    queues = {queue["name"]: queue for shard in found["shards"] for queue in shard["queues"]}
    check(sorted((m["bytes"], m["state"], m["received"]) for m in queues["one"]["messages"]) ==
          [(1, "ready", 0), (2, "delayed", 0)], queues)
    [message] = queues["two.fifo"]["messages"]
    check(set(message) == {"sequence", "id", "bytes", "sent", "received", "state"}, message)
    check(message["state"] == "in flight" and message["received"] == 1, message)
    check(all(set(fact) == {"record", "at", "fact"} for shard in found["shards"]
              for fact in shard["facts"]), found)


def the_directory_of_a_node_is_sound_without_a_journal(case):
    data = case.directory / "d"
    with case.serve("--data", str(data), "--threads", "1", "--listen", "127.0.0.1:0") as server:
        client = Client(server.url)
        client.call("CreateQueue", QueueName="q")
        client.call("SendMessage", QueueUrl="q", MessageBody="x")
        # Makes a checkpoint.
        check(case.run("backup", "--data", str(data), "--to", "backup")[0] == 0)
    for name in [*data.glob("shard-*/*.segment"), *data.glob("shard-*/end")]:
        name.unlink()
    status, output, _ = case.run("inspect", str(data))
    check(status == 1 and "DAMAGED" in output, output)
    meta = data / "stanchion.meta"
    meta.write_text(meta.read_text().replace("format 3", "format 4") + "fleet orders\n")
    status, output, errors = case.run("inspect", str(data))
    check(status == 0 and "the fleet orders, whose journals are in Kafka" in output, output + errors)
    check("DAMAGED" not in output and "queue q (standard): 1 visible" in output, output)
    status, found = inspected(case, str(data))
    check(status == 0 and found["sound"] and found["fleet"] == "orders", found)
    # What is damaged is found all the same.
    [table] = sorted(data.glob("shard-000/store/*.sst"))[:1]
    with open(table, "r+b") as file:
        file.write(b"damaged!")
    check(case.run("inspect", str(data))[0] == 1)


def inspect_prints_json_of_damage_too(case):
    with case.serve("--data", "d", "--threads", "1", "--listen", "127.0.0.1:0") as server:
        client = Client(server.url)
        client.call("CreateQueue", QueueName="q")
        for _ in range(20):
            client.call("SendMessage", QueueUrl="q", MessageBody="x" * 500)
        server.process.kill()
    # A name that is no UTF-8.
    data = (case.directory / "d").rename(case.directory / "d\udcffä")
    [segment] = sorted((data / "shard-000").glob("*.segment"))[:1]
    with open(segment, "r+b") as file:
        file.seek(3000)
        file.write(b"damaged!")
    status, found = inspected(case, str(data))
    check(status == 1 and found["sound"] is False, found)
    check(found["data"].endswith("/d\ufffd\ufffd\ufffd"), found["data"])
    [shard] = found["shards"]
    problem = shard["segments"][0]["problem"]
    check(shard["sound"] is False and 0 < problem["offset"] <= 3000 and problem["text"], shard)
    check(len(shard["queues"]) <= 1, shard)
    status, output, errors = case.run("inspect", "--json", "nowhere")
    check(status == 1 and output == "" and "nowhere" in errors, errors)


if __name__ == "__main__":
    sys.exit(run_tests(
        tests_of(globals()) + tests_of(vars(virtual_time)) + tests_of(vars(addresses))
        + tests_of(vars(rights)) + tests_of(vars(counted_memory)) + tests_of(vars(robustness))
        + tests_of(vars(usage)), __doc__))
