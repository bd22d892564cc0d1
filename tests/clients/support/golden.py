"""The golden files of errors, and answers in their form."""
import pathlib
import re

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "golden/wire/errors"
REQUEST_ID = "66916324-67ca-54bb-a410-3f567a7a0571"


def errors(protocol):
    """The sections of the golden file of a protocol, each by its name."""
    text = (FOLDER / f"{protocol.replace('_', '')}.txt").read_bytes()
    sections = (section.partition(b"\n") for section in text.split(b">>> ")[1:])
    return {name.decode(): content.rstrip(b"\n") for name, _, content in sections}


def form_of(answer):
    """An answer as a section of the golden file, with the request id that it has there."""
    query_error = answer.headers.get("x-amzn-query-error")
    head = [str(answer.status), f"Content-Type: {answer.headers['Content-Type']}",
            f"x-amzn-RequestId: {REQUEST_ID}"]
    head += [f"x-amzn-query-error: {query_error}"] if query_error else []
    body = re.sub(rb"<RequestId>[^<]*</RequestId>",
                  f"<RequestId>{REQUEST_ID}</RequestId>".encode(), answer.body)
    body = re.sub(rb'"RequestId":"[^"]*"', f'"RequestId":"{REQUEST_ID}"'.encode(), body)
    return ("\n".join(head) + "\n\n").encode() + body.rstrip(b"\n")
