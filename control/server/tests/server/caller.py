"""Calls of the published contract's methods by their short names, and what is expected of them."""

import json
import threading
import time

from connectrpc.code import Code
from connectrpc.errors import ConnectError
from google.protobuf import json_format, message_factory

import metalstack.api.v2.common_pb2 as common_pb
from contract import http, methods

NEWEST = {"lockingStrategy": "OPTIMISTIC_LOCKING_STRATEGY_SERVER"}
HOUR = "3600s"
# Longest wait for anything.
PATIENCE_S = 60
# By the short name: the client's class, its method's name, and the method's descriptor.
CONTRACT = {
    f"{method.full_name.split('.')[1]}.{method.containing_service.name}/{method.name}":
        (client, name, method)
    for client, name, method in methods()
}
# Methods that a log-in may call of itself, and a token only where it lists them.
OF_ONESELF = [
    f"/{method.containing_service.full_name}/{method.name}"
    for _, _, method in CONTRACT.values()
    if method.GetOptions().Extensions[common_pb.visibility] == common_pb.VISIBILITY_SELF
]


def request_of(key, fields):
    """The method's request message with these fields, which are named as in its JSON."""
    request = message_factory.GetMessageClass(CONTRACT[key][2].input_type)()
    return json_format.ParseDict(fields, request)


class Caller:
    """Calls with one protocol and codec, and remembers which methods answered.

    `before_call` gets the caller, the method and the request ahead of each call.
    """

    def __init__(self, url, options, secret, served, before_call=None, headers=None):
        self.url, self.options, self.secret, self.served = url, options, secret, served
        self.before_call, self.headers = before_call, headers or {}

    def as_(self, secret):
        return Caller(self.url, self.options, secret, self.served, self.before_call)

    def with_header(self, name, value):
        headers = {**self.headers, name: value}
        return Caller(self.url, self.options, self.secret, self.served, self.before_call, headers)

    def trial(self):
        """The same caller; the server says what each call would do, and does nothing."""
        return Caller(f"{self.url}/dry-run", self.options, self.secret, set())

    def __call__(self, key, **fields):
        request = request_of(key, fields)
        if self.before_call:
            self.before_call(self, key, request)
        return self.send(key, request)

    def send(self, key, request, prefix=""):
        """The answer to a request; of a stream its first message."""
        client, name, method = CONTRACT[key]
        headers = dict(self.headers)
        if self.secret:
            headers["Authorization"] = f"Bearer {self.secret}"
        try:
            answer = getattr(client(f"{self.url}{prefix}", **self.options), name)(
                request, headers=headers)
            answer = next(iter(answer)) if method.server_streaming else answer
        except ConnectError as error:
            error.add_note(f"{key} {json_format.MessageToDict(request)}")
            raise
        self.served.add(key)
        return answer


    def listen(self, key, **fields):
        """Messages of a stream, which is opened again when the client's patience ends."""
        client, name, _ = CONTRACT[key]
        headers = {"Authorization": f"Bearer {self.secret}"}
        while True:
            try:
                yield from getattr(client(self.url, **self.options), name)(
                    request_of(key, fields), headers=headers)
            except ConnectError as error:
                if error.code != Code.DEADLINE_EXCEEDED:
                    raise

    def post(self, key, content, prefix=""):
        """The code and answer to a request in JSON as it is: fields may be null or empty."""
        method = CONTRACT[key][2]
        headers = {"Content-Type": "application/json"}
        if self.secret:
            headers["Authorization"] = f"Bearer {self.secret}"
        url = f"{self.url}{prefix}/{method.containing_service.full_name}/{method.name}"
        answer = http.post(url, headers=headers, content=json.dumps(content).encode())
        found = json.loads(answer.content)
        return ("ok" if answer.status == 200 else found["code"]), found


def refused(code, act):
    """That a call gets this code."""
    try:
        act()
    except ConnectError as error:
        assert error.code == code, f"{error.code} {error.message}, {code} expected"
        return
    raise AssertionError(f"not refused, {code} expected")


def wait_until(is_met):
    """Calls a function until its result is true, and returns that."""
    until = time.monotonic() + PATIENCE_S
    while True:
        found = is_met()
        if found:
            return found
        assert time.monotonic() < until, f"not met within {PATIENCE_S} s"
        threading.Event().wait(0.01)
