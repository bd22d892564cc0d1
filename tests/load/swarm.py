"""Thousands of raw HTTP connections in one thread, each sending just the bytes it is told to.

A client library would hide what these tests are about: requests that come byte by byte, answers
that nobody reads, connections that break in the middle.
"""

import json
import select
import socket
import struct
import time

CONNECTS_AT_ONCE = 256
READ_SIZE = 65536


def http(body, *lines):
    """A POST of these bytes."""
    head = ["POST / HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}", *lines]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def call(action, **parameters):
    """The bytes of a call in JSON."""
    return http(
        json.dumps(parameters).encode(),
        f"X-Amz-Target: AmazonSQS.{action}",
        "Content-Type: application/x-amz-json-1.0",
    )


class Answer:
    def __init__(self, status, head, body):
        self.status, self.head, self.body = status, head, body

    def json(self):
        return json.loads(self.body) if self.body else {}

    def messages(self):
        return self.json().get("Messages", [])


class Member:
    """One connection of the swarm."""

    def __init__(self, address):
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connected = False
        self.ended = False  # Closed by the other side.
        self.refused = None  # The error with which it ended, if any.
        self.input = b""
        self.output = b""
        self.answers = []
        self.socket.connect_ex(address)

    def take_answers(self):
        """Moves whole answers from the input to `answers`."""
        while True:
            head, separator, rest = self.input.partition(b"\r\n\r\n")
            if not separator:
                return
            lines = head.decode("latin-1").split("\r\n")
            headers = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in lines[1:])
            }
            size = int(headers.get("content-length", 0))
            if len(rest) < size:
                return
            self.answers.append(Answer(int(lines[0].split()[1]), headers, rest[:size]))
            self.input = rest[size:]


class Swarm:
    """Connections to one address. Nothing happens outside of its methods."""

    def __init__(self, address, count=0):
        self.address = address
        self.poll = select.epoll()
        self.by_fd = {}
        self.members = []
        self.grow(count)

    def grow(self, count):
        """Adds connections and waits until each is there; returns the new ones."""
        added = []
        while len(added) < count:
            some = [self._add() for _ in range(min(CONNECTS_AT_ONCE, count - len(added)))]
            self.run_until(lambda some=some: all(m.connected or m.ended for m in some))
            added += some
        return added

    def _add(self):
        member = Member(self.address)
        self.members.append(member)
        self.by_fd[member.socket.fileno()] = member
        self.poll.register(member.socket, select.EPOLLIN | select.EPOLLOUT)
        return member

    def send(self, member, data):
        member.output += data
        self._write(member)

    def send_all(self, data, members=None):
        for member in self.members if members is None else members:
            self.send(member, data)

    def ask_all(self, data, seconds=60, members=None):
        """Sends this on each and returns their next answers, in order; None where none came."""
        members = self.members if members is None else members
        before = [len(member.answers) for member in members]
        self.send_all(data, members)
        self.wait_for_answers(members, before, seconds)
        return [
            m.answers[n] if len(m.answers) > n else None
            for m, n in zip(members, before, strict=True)
        ]

    def wait_for_answers(self, members, before, seconds):
        waiting = {m.socket.fileno(): n for m, n in zip(members, before, strict=True)}

        def done():
            for fd in [fd for fd, n in waiting.items() if self._settled(fd, n)]:
                del waiting[fd]
            return not waiting

        return self.run_until(done, seconds)

    def _settled(self, fd, count):
        member = self.by_fd.get(fd)
        return member is None or member.ended or len(member.answers) > count

    def run_until(self, done, seconds=60.0):
        """Reads and writes until `done()` holds or the time is over; returns which it was."""
        deadline = time.monotonic() + seconds
        while not done():
            if time.monotonic() > deadline:
                return False
            self.run(0.1)
        return True

    def run(self, seconds):
        """Waits once, at most this long, and handles the events."""
        for fd, events in self.poll.poll(seconds, 4096):
            member = self.by_fd.get(fd)
            if member is None:
                continue
            if events & select.EPOLLOUT:
                member.connected = True
                self._write(member)
            if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
                self._read(member)

    def _read(self, member):
        try:
            data = member.socket.recv(READ_SIZE)
        except BlockingIOError:
            return
        except OSError as error:
            member.refused = error
            data = b""
        if data:
            member.input += data
            member.take_answers()
        else:
            member.ended = True
            self._forget(member)

    def _write(self, member):
        if not member.connected or member.ended:
            return
        try:
            while member.output:
                member.output = member.output[member.socket.send(member.output) :]
        except BlockingIOError:
            pass
        except OSError:
            member.output = b""  # The other side has closed; reading reports that.
        events = select.EPOLLIN | (select.EPOLLOUT if member.output else 0)
        self.poll.modify(member.socket, events)

    def _forget(self, member):
        if self.by_fd.pop(member.socket.fileno(), None) is not None:
            self.poll.unregister(member.socket)

    def leave(self, member, rudely):
        """Closes a connection: with a FIN, or with a reset as if the program had crashed."""
        self._forget(member)
        if rudely:
            member.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        member.socket.close()
        self.members.remove(member)

    def close(self):
        for member in self.members:
            member.socket.close()
        self.poll.close()
        self.members, self.by_fd = [], {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
