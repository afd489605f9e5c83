# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Calls of the API: Connect with JSON over Ansible's own HTTP client.

The one place with I/O. A call that may change something is repeated only if it was never sent: the
server may have carried it out although the answer was lost.
"""
from __future__ import annotations

import base64
import json
import random
import re
import socket
import time
from urllib.error import HTTPError, URLError

from ansible.module_utils.urls import open_url

# Most attempts of a call, including the first one. The last error is returned.
CALL_ATTEMPTS = 5
# Pause before the second attempt, seconds. It doubles; up to half of it is jitter.
BACKOFF_FIRST = 0.2
# Largest answer, bytes: a list of all machines. A larger one fails the call.
ANSWER_BYTES_MAX = 256 << 20
# Prefixes of the names of methods that only read, as `metalmesh` has them.
READS = ("Get", "List", "Latest", "Match", "Issues", "Capacity", "Try", "InviteGet", "TokenScoped")
# Names of further ones.
READ_NAMES = ("Status", "Own", "All")
# Refusals of a dry run that may come from what earlier tasks of the same check would have created.
ABOUT_THE_STATE = ("not_found", "failed_precondition", "resource_exhausted", "aborted")
NUMBER = re.compile(r"^(MM-\d{4})\b")


class ApiError(Exception):
    """A refused or failed call.

    `code` is Connect's name of the code, `number` the number of metalmesh's catalogue (MM-1203),
    or None.
    """

    def __init__(self, code, message, method=""):
        super().__init__(message)
        self.code = code
        self.message = message
        self.method = method
        found = NUMBER.match(message)
        self.number = found.group(1) if found else None

    def describe(self):
        """The error as one sentence, with the method that was called."""
        return "%s (%s, %s)" % (self.message, self.code, self.method)


def is_read(method):
    """True if a method's name says that it changes nothing."""
    return method.startswith(READS) or method in READ_NAMES


def error_of(status, body, method):
    """The error in the body of an answer that is not a success."""
    try:
        parsed = json.loads(body)
    except ValueError:
        parsed = None
    if isinstance(parsed, dict) and isinstance(parsed.get("code"), str):
        return ApiError(parsed["code"], parsed.get("message") or parsed["code"], method)
    text = body.decode("utf-8", "replace").strip()[:300]
    return ApiError("unknown", "the server answers with HTTP %d: %s" % (status, text), method)


class ApiClient:
    """The services of one server, with one token."""

    def __init__(self, settings, dry_run=False):
        self.settings = settings
        # In check mode calls that would change something go to the server as dry runs.
        self.dry_run = dry_run
        self._scope = None

    def call(self, service, method, message=None, headers=None):
        """Calls a method and returns its answer as parsed JSON."""
        reads = is_read(method)
        prefix = "/dry-run" if self.dry_run and not reads else ""
        url = "%s%s/%s/%s" % (self.settings.url, prefix, service, method)
        repeatable = reads or "Idempotency-Key" in (headers or {})
        pause = BACKOFF_FIRST
        for attempt in range(1, CALL_ATTEMPTS + 1):
            try:
                return self._send(url, "%s/%s" % (service, method), message or {}, headers or {})
            except ApiError as error:
                again = error.code == "unavailable" and repeatable or error.code == "unreached"
                if not again or attempt == CALL_ATTEMPTS:
                    raise
            time.sleep(pause * random.uniform(0.5, 1.0))
            pause *= 2
        raise AssertionError("the last attempt returns or raises")

    def find(self, service, method, message, headers=None):
        """As `call`, but None for an object that is not there."""
        try:
            return self.call(service, method, message, headers)
        except ApiError as error:
            if error.code != "not_found":
                raise
            return None

    @property
    def is_admin(self):
        """True if the token has an admin role: lists may then go over all tenants."""
        if self._scope is None:
            self._scope = self.call("metalstack.api.v2.MethodService", "TokenScopedList")
        return "adminRole" in self._scope

    def _send(self, url, method, message, headers):
        every = {"Content-Type": "application/json", "Connect-Protocol-Version": "1"}
        if self.settings.token:
            every["Authorization"] = "Bearer %s" % self.settings.token
        every.update(headers)
        try:
            answer = open_url(
                url, data=json.dumps(message).encode("utf-8"), headers=every, method="POST",
                timeout=self.settings.timeout, validate_certs=self.settings.validate_certs,
                ca_path=self.settings.ca_path, http_agent="ansible-metalmesh",
                follow_redirects="none")
            body = answer.read(ANSWER_BYTES_MAX + 1)
        except HTTPError as error:
            raise error_of(error.code, error.read(1 << 20), method) from error
        except URLError as error:
            refused = isinstance(error.reason, (ConnectionRefusedError, socket.gaierror))
            code = "unreached" if refused else "unavailable"
            raise ApiError(code, self._unreached(error.reason), method) from error
        except (OSError, ValueError) as error:
            raise ApiError("unavailable", self._unreached(error), method) from error
        if len(body) > ANSWER_BYTES_MAX:
            raise ApiError("resource_exhausted", "the answer is larger than %d bytes; narrow the "
                           "query" % ANSWER_BYTES_MAX, method)
        try:
            return json.loads(body or b"{}")
        except ValueError as error:
            raise ApiError("unknown", "%s answers with something else than JSON; correct api_url"
                           % self.settings.url, method) from error

    def _unreached(self, reason):
        return "%s does not answer: %s; correct api_url, or start the server" % (
            self.settings.url, reason)


def as_base64(text):
    """User data as the API takes it: base64. Text that is base64 already stays as it is."""
    plain = text.strip()
    if "\n" not in plain and not plain.startswith(("#", "{")):
        try:
            base64.b64decode(plain, validate=True)
            return plain
        except ValueError:
            pass
    return base64.b64encode(text.encode("utf-8")).decode("ascii")
