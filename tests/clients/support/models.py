"""boto3 in either protocol.

botocore speaks what its model of the service says. Debian's says Query; the model of JSON differs in
its metadata and in that members have no other names on the wire, so it is made from that one. Actions
of move tasks, which Debian's does not know, are added. A model that says JSON has lost the names of
Query, so a newer boto3 speaks JSON only.
"""
import copy
import json
import pathlib
import re
import tempfile

import boto3
import botocore.config
import botocore.exceptions
import botocore.loaders
import botocore.session

# Actions that the model may lack: members of the request and of the result.
_MOVES = {
    "StartMessageMoveTask": (("SourceArn", "DestinationArn"), ("TaskHandle",)),
    "CancelMessageMoveTask": (("TaskHandle",), ("ApproximateNumberOfMessagesMoved",)),
}
# What only Query needs.
_NAMES_OF_QUERY = ("locationName", "flattened", "resultWrapper", "xmlNamespace")


def given():
    return botocore.loaders.Loader().load_service_model("sqs", "service-2")


def speaks(protocol):
    """True if the installed boto3 has, or can be given, a model of this protocol."""
    return protocol == "json" or given()["metadata"]["protocol"] == "query"


def client(protocol, endpoint):
    model = _with_moves(copy.deepcopy(given()))
    if protocol == "json":
        model = _without(model, _NAMES_OF_QUERY)
        model["metadata"].update(protocol="json", protocols=["json"], jsonVersion="1.0",
                                 targetPrefix="AmazonSQS", awsQueryCompatible={})
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory) / "sqs" / "2012-11-05"
        place.mkdir(parents=True)
        (place / "service-2.json").write_text(json.dumps(model))
        session = botocore.session.Session()
        session.register_component("data_loader", botocore.loaders.Loader([directory]))
        config = botocore.config.Config(read_timeout=60, retries={"max_attempts": 0})
        made = boto3.Session(botocore_session=session).client("sqs", endpoint_url=endpoint,
                                                              config=config)
    assert made.meta.service_model.metadata["protocol"] == protocol
    return made


def method(made, action):
    return getattr(made, re.sub(r"(?<!^)(?=[A-Z])", "_", action).lower())


def _with_moves(model):
    for action, members in _MOVES.items():
        if action in model["operations"]:
            continue
        for suffix, names in zip(("Request", "Result"), members):
            model["shapes"][action + suffix] = {
                "type": "structure", "members": {name: {"shape": "String"} for name in names}}
        model["operations"][action] = {
            "name": action, "http": {"method": "POST", "requestUri": "/"},
            "input": {"shape": action + "Request"},
            "output": {"shape": action + "Result", "resultWrapper": action + "Result"}}
    return model


def _without(node, names):
    if isinstance(node, list):
        return [_without(inner, names) for inner in node]
    if isinstance(node, dict):
        return {key: _without(inner, names) for key, inner in node.items() if key not in names}
    return node
