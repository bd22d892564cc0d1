"""The smallest SQS client that is honest about what it knows.

A call ends in one of four ways, and the audit depends on telling them apart:

    a value     the server said yes
    Refused     the server said no: nothing was changed
    NotSent     the server never saw the request
    Doubt       the connection broke in between: done or not, nobody knows
"""

import http.client
import json

ANSWER_SECONDS_MAX = 30


class Refused(Exception):
    def __init__(self, status, code, message):
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        self.message = message


class NotSent(Exception):
    pass


class Doubt(Exception):
    pass


class NoAnswer(Doubt):
    """The connection was open, and no answer came for a long time."""


class Client:
    """One keep-alive connection, for one thread. `find` returns (host, port), or None for none."""

    def __init__(self, find):
        self.find = find
        self.connection = None
        self.address = None

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def call(self, action, timeout=ANSWER_SECONDS_MAX, **parameters):
        body = json.dumps(parameters).encode()
        headers = {
            "X-Amz-Target": f"AmazonSQS.{action}",
            "Content-Type": "application/x-amz-json-1.0",
        }
        self._connect(timeout)
        try:
            self.connection.request("POST", "/", body, headers)
            response = self.connection.getresponse()
            answer = response.read()
        except TimeoutError as error:
            self.close()
            raise NoAnswer(f"{action}: no answer for {timeout} s") from error
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Doubt(f"{action}: {error!r}") from error
        if response.will_close:
            self.close()
        if response.status == 200:
            return json.loads(answer) if answer else {}
        try:
            error = json.loads(answer)
        except ValueError:
            error = {}
        raise Refused(response.status, error.get("__type", "?"), error.get("message", answer[:200]))

    def _connect(self, timeout):
        address = self.find()
        if address is None:
            raise NotSent("there is no server")
        if self.connection is not None and address == self.address:
            self.connection.sock.settimeout(timeout)
            return
        self.close()
        connection = http.client.HTTPConnection(*address, timeout=timeout)
        try:
            connection.connect()
        except OSError as error:
            raise NotSent(repr(error)) from error
        self.connection = connection
        self.address = address
