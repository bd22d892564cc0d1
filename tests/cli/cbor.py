"""CBOR as far as RPC v2 CBOR needs it, written from RFC 8949, for a client of CloudWatch."""
import datetime
import struct


def head(major, number):
    if number < 24:
        return bytes([major << 5 | number])
    for info, form in ((24, ">B"), (25, ">H"), (26, ">I"), (27, ">Q")):
        if number < 1 << 8 * struct.calcsize(form):
            return bytes([major << 5 | info]) + struct.pack(form, number)
    raise ValueError(number)


def encode(value, indefinite=False):
    """With `indefinite`, lists and maps do not say their length, as some clients write them."""
    if value is None or isinstance(value, bool):
        return {None: b"\xf6", True: b"\xf5", False: b"\xf4"}[value]
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, float):
        return b"\xfb" + struct.pack(">d", value)
    if isinstance(value, datetime.datetime):
        return b"\xc1" + encode(value.timestamp())
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, (list, tuple)):
        inner = b"".join(encode(one, indefinite) for one in value)
        return b"\x9f" + inner + b"\xff" if indefinite else head(4, len(value)) + inner
    inner = b"".join(encode(key) + encode(one, indefinite) for key, one in value.items())
    return b"\xbf" + inner + b"\xff" if indefinite else head(5, len(value)) + inner


class Decoder:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        assert self.at + size <= len(self.data), "the bytes end too early"
        self.at += size
        return self.data[self.at - size:self.at]

    def value(self):
        first = self.take(1)[0]
        major, info = first >> 5, first & 31
        assert info < 28, "all lengths are definite"
        raw = self.take(1 << info - 24) if info >= 24 else bytes([info])
        number = int.from_bytes(raw, "big")
        if major == 0:
            return number
        if major == 3:
            return self.take(number).decode()
        if major == 4:
            return [self.value() for _ in range(number)]
        if major == 5:
            return {self.value(): self.value() for _ in range(number)}
        if major == 6:
            assert number == 1, "only times are tagged"
            return datetime.datetime.fromtimestamp(self.value(), datetime.timezone.utc)
        assert (major, info) == (7, 27), "numbers with fractions are doubles"
        return struct.unpack(">d", raw)[0]


def decode(data):
    decoder = Decoder(data)
    value = decoder.value()
    assert decoder.at == len(data), "something follows the value"
    return value
