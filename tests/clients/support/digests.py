"""The digests that SQS answers with, computed from what was sent, independently of the server."""
import hashlib
import struct


def of_text(text):
    return hashlib.md5(text.encode()).hexdigest()


def of_attributes(attributes):
    """Of message attributes or system attributes as boto3 takes them."""
    def sized(data):
        return struct.pack(">I", len(data)) + data

    digest = hashlib.md5()
    for name in sorted(attributes):
        value = attributes[name]
        digest.update(sized(name.encode()) + sized(value["DataType"].encode()))
        if value["DataType"].startswith("Binary"):
            digest.update(b"\x02" + sized(value["BinaryValue"]))
        else:
            digest.update(b"\x01" + sized(value["StringValue"].encode()))
    return digest.hexdigest()
