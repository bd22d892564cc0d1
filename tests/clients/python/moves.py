"""Move tasks for a client that is older than they are.

Debian's boto3 does not know the three actions, so they are called as any program that speaks the
Query protocol would: signed by botocore, answered in XML. A client that knows them is used as is.
"""
import re
import urllib.parse
import xml.etree.ElementTree as xml

import botocore.auth
import botocore.awsrequest
import botocore.exceptions
import botocore.httpsession

import kit

_NUMBERS = {"ApproximateNumberOfMessagesMoved", "ApproximateNumberOfMessagesToMove",
            "MaxNumberOfMessagesPerSecond", "StartedTimestamp"}


def call(action, **parameters):
    """What boto3 would answer: a dictionary, or a ClientError."""
    client = kit.client()
    if action in kit.offered():
        return getattr(client, re.sub(r"(?<!^)(?=[A-Z])", "_", action).lower())(**parameters)
    answer = post(client, {"Action": action, "Version": "2012-11-05", **parameters})
    tree = _plain(xml.fromstring(answer.content))
    if answer.status_code != 200:
        raise botocore.exceptions.ClientError(
            {"Error": tree["Error"],
             "ResponseMetadata": {"HTTPStatusCode": answer.status_code,
                                  "HTTPHeaders": answer.headers,
                                  "RequestId": tree["RequestId"]}}, action)
    result = tree.get(action + "Result") or {}
    if action == "ListMessageMoveTasks":
        entries = result.get("ListMessageMoveTasksResultEntry", [])
        return {"Results": entries if isinstance(entries, list) else [entries]}
    return result


def post(client, parameters):
    """Sends one call in the Query protocol, signed by botocore's own code rather than awscrt's."""
    request = botocore.awsrequest.AWSRequest(
        "POST", kit.endpoint + "/", data=urllib.parse.urlencode(parameters),
        headers={"Content-Type": "application/x-www-form-urlencoded"})
    credentials = client._request_signer._credentials
    botocore.auth.SigV4Auth(credentials, "sqs", kit.REGION).add_auth(request)
    return botocore.httpsession.URLLib3Session().send(request.prepare())


def _plain(element):
    """Elements as dictionaries; one that occurs several times as a list."""
    if not len(element):
        name = element.tag.rsplit("}", 1)[1]
        return int(element.text) if name in _NUMBERS else element.text
    found = {}
    for child in element:
        name, value = child.tag.rsplit("}", 1)[1], _plain(child)
        if name in found:
            before = found[name]
            found[name] = (before if isinstance(before, list) else [before]) + [value]
        else:
            found[name] = value
    return found
