"""The files of Kafka's brokers, as far as a test changes them while the brokers do not run."""

from cluster import ALL_BROKERS

RECORDS = 1  # The kind of an entry that has some.
ENTRY_HEAD = 64  # Bytes of an entry before its payload, whose size is in it.
BATCH_HEAD = 12  # Its first offset, and how many bytes follow.
RECORDS_AT = 61  # Where the first record of a batch begins.
NO_KEY = 1  # As a size of Kafka's, which counts in twos.


class Batch:
    """Of Kafka's, in a file of a log."""

    def __init__(self, offset, at, size, has_records, entry):
        self.offset = offset
        self.at = at
        self.size = size
        self.has_records = has_records
        self.entry = entry  # Where the bytes of its first entry stand.

    def changes_of_sizes(self, file):
        """(where, mask) of all bits of the sizes before its first entry without which the entry is not
        what it was. The other bits leave it: no key is an empty one, and a record that is longer or
        shorter by one byte has that much of headers."""
        at = self.at + RECORDS_AT
        record = varint(file, at)
        at = varint(file, varint(file, record.stop + 1).stop).stop  # Attributes, time, offset.
        if file[at] != NO_KEY:
            raise RuntimeError(f"an entry with a key, at {at}")
        value = varint(file, at + 1)
        bits = [1 << bit for bit in range(8)]
        return ([(record.start, mask) for mask in bits if mask != 2]
                + [(where, mask) for where in record[1:] for mask in bits]
                + [(at, mask) for mask in bits if mask != 1]
                + [(where, mask) for where in value for mask in bits])


def varint(file, at):
    """Where its bytes stand."""
    end = at
    while file[end] & 0x80:
        end += 1
    return range(at, end + 1)


def segments(data, partition):
    return sorted((data / partition).glob("*.log"))


def batches(path):
    found, at, file = [], 0, path.read_bytes()
    while at + BATCH_HEAD < len(file):
        size = BATCH_HEAD + int.from_bytes(file[at + 8:at + BATCH_HEAD], "big")
        if size == BATCH_HEAD or at + size > len(file):
            break
        entry = file.find(b"STNE", at, at + size)
        end = entry + ENTRY_HEAD + int.from_bytes(file[entry + 52:entry + 56], "little")
        found.append(Batch(int.from_bytes(file[at:at + 8], "big"), at, size,
                           entry >= 0 and file[entry + 5] == RECORDS,
                           range(entry, end) if entry >= 0 else range(0)))
        at += size
    return found


def last_with_records(data, partition):
    """The offset of the last batch with records in any of the brokers' copies; -1 if there is none."""
    return max((batch.offset for broker in ALL_BROKERS
                for path in segments(data / str(broker), partition)
                for batch in batches(path) if batch.has_records), default=-1)


def note_offset(checkpoint, partition, offset=None):
    """In a file of Kafka's: a version, how many lines follow, and a line for each partition. Without
    an offset the partition has none. A broker that was killed soon after its first start leaves the
    file empty."""
    topic, _, number = partition.rpartition("-")
    noted = checkpoint.read_text() if checkpoint.exists() else ""
    version, _, *lines = noted.splitlines() or ["0", "0"]
    lines = [line for line in lines if not line.startswith(f"{topic} {number} ")]
    if offset is not None:
        lines.append(f"{topic} {number} {offset}")
    checkpoint.write_text("\n".join([version, str(len(lines)), *lines]) + "\n")
