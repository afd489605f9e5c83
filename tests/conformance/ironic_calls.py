"""Calls of metalmesh's own API in JSON, and of Ironic's API as it is on the wire. Standard library
only, so that every environment can use it.
"""

import http.client
import json
import os
import struct
import threading
import time
import urllib.parse

API = os.environ["METALMESH_API"]
# Empty for scripts that only call metalmesh's own API.
IRONIC = os.environ.get("IRONIC_URL", "")
ADMIN = os.environ["ADMIN_TOKEN"]
# Longest wait for anything.
PATIENCE_S = 60
# The newest microversion of Ironic 39.0.0.
NEWEST = "1.115"


def wait_until(is_met, about="it"):
    """Calls a function until its result is true, and returns that."""
    until = time.monotonic() + PATIENCE_S
    while True:
        found = is_met()
        if found:
            return found
        assert time.monotonic() < until, f"{about} is not met within {PATIENCE_S} s"
        threading.Event().wait(0.05)


def connection(url, timeout=30):
    parts = urllib.parse.urlparse(url)
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)


class Refused(Exception):
    """A refusal of metalmesh's own API."""

    def __init__(self, method, code, message):
        super().__init__(f"{method}: {code} {message}")
        self.code = code


# What a call ends with when the server is gone, or does not want it any more.
GONE = (Refused, OSError, http.client.HTTPException)


class Api:
    """Calls metalmesh's own API (Connect, JSON) with a token."""

    def __init__(self, token):
        self.token = token

    def head(self, content):
        return {"Content-Type": content, "Authorization": f"Bearer {self.token}"}

    @staticmethod
    def path(method):
        if method.startswith("metalmesh."):
            return f"/{method}"
        package, _, name = method.partition(".")
        return f"/metalstack.{package}.v2.{name}"

    def __call__(self, method, **fields):
        link = connection(API)
        link.request("POST", self.path(method), json.dumps(fields),
                     self.head("application/json"))
        answer = link.getresponse()
        found = json.loads(answer.read() or b"{}")
        link.close()
        if answer.status != 200:
            raise Refused(method, found.get("code"), found.get("message"))
        return found

    def stream(self, method, **fields):
        """Messages of a stream, until the server ends it. The server has accepted the call before
        anybody asks for the first message.
        """
        body = json.dumps(fields).encode()
        link = connection(API, timeout=None)
        link.request("POST", self.path(method), b"\0" + struct.pack(">I", len(body)) + body,
                     self.head("application/connect+json"))
        answer = link.getresponse()
        if answer.status != 200:
            raise Refused(method, answer.status, answer.read().decode())
        return self.messages(link, answer)

    @staticmethod
    def messages(link, answer):
        """The messages of an accepted stream; it ends with its connection."""
        while True:
            head = answer.read(5)
            if len(head) < 5:
                break
            flags, size = struct.unpack(">BI", head)
            message = json.loads(answer.read(size) or b"{}")
            if flags & 2:
                break
            yield message
        link.close()


class Answer:
    """An answer of Ironic's API."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.text = status, headers, body.decode()
        try:
            self.json = json.loads(self.text) if self.text else None
        except ValueError:
            self.json = None

    @property
    def reason(self):
        """The text of a refusal."""
        found = self.json if isinstance(self.json, dict) else {}
        if "error_message" in found:
            return json.loads(found["error_message"])["faultstring"]
        if "error" in found:
            return found["error"]["message"]
        if "NeutronError" in found:
            return found["NeutronError"]["message"]
        return self.text

    def __repr__(self):
        return f"{self.status} {self.text[:500]}"


class Ironic:
    """Calls Ironic's API with a token; one connection, kept open."""

    def __init__(self, token, version=NEWEST):
        self.token, self.version = token, version
        self.link = None

    def ask(self, verb, path, body=None, headers=None, raw=None):
        head = {"X-OpenStack-Ironic-API-Version": self.version, "Accept": "application/json"}
        if self.token:
            head["X-Auth-Token"] = self.token
        content = raw
        if body is not None:
            content = json.dumps(body).encode()
        if content is not None:
            head["Content-Type"] = "application/json"
        head.update(headers or {})
        for attempt in (1, 2):
            try:
                self.link = self.link or connection(IRONIC)
                self.link.request(verb, path, content, head)
                answer = self.link.getresponse()
                return Answer(answer.status, answer.headers, answer.read())
            except (http.client.HTTPException, OSError):
                # The server closes connections that were idle; a fresh one is tried once.
                self.link.close()
                self.link = None
                if attempt == 2:
                    raise

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.ask("POST", path, body, **more)

    def put(self, path, body=None, **more):
        return self.ask("PUT", path, body, **more)

    def patch(self, path, body, **more):
        return self.ask("PATCH", path, body, **more)

    def delete(self, path, **more):
        return self.ask("DELETE", path, **more)

    def ok(self, verb, path, body=None):
        """The answer of a call that has to succeed."""
        answer = self.ask(verb, path, body)
        assert answer.status < 300, f"{verb} {path} {body}: {answer}"
        return answer.json

    def refused(self, status, verb, path, body=None, why=""):
        """A call that has to be refused with this status, for a reason that has these words."""
        answer = self.ask(verb, path, body)
        assert answer.status == status, f"{verb} {path} {body}: {status} expected: {answer}"
        assert why in answer.reason, f"{verb} {path} {body}: {why!r} expected: {answer}"
        return answer
