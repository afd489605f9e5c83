# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Calls: paths, repetition and errors, against an HTTP client that is told what to answer."""
from __future__ import annotations

import io
import json
from urllib.error import HTTPError, URLError

import pytest

from ansible_collections.metalmesh.metalmesh.plugins.module_utils import transport
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.settings import Settings

URL = "http://127.0.0.1:4443"


class Network:
    """Answers by a list; a value that is an exception is raised."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.sent = []

    def open_url(self, url, data=None, headers=None, **_options):
        self.sent.append((url[len(URL):], json.loads(data), headers))
        answer = self.answers.pop(0)
        # An error is made anew each time: its body is read once.
        answer = answer() if callable(answer) else answer
        if isinstance(answer, Exception):
            raise answer
        return io.BytesIO(answer)


def refused(code, message="MM-1203 none is free", status=429):
    """An error of the API."""
    body = json.dumps({"code": code, "message": message}).encode()
    return HTTPError(URL, status, "", {}, io.BytesIO(body))


def away():
    """The error of a server that is starting."""
    return refused("unavailable", "starting", 503)


UNREACHED = URLError(ConnectionRefusedError("refused"))
RESET = URLError(ConnectionResetError("reset"))


@pytest.fixture(name="network")
def _network(monkeypatch):
    def given(*answers):
        network = Network(*answers)
        monkeypatch.setattr(transport, "open_url", network.open_url)
        monkeypatch.setattr(transport.time, "sleep", lambda _seconds: None)
        return network
    return given


def client(dry_run=False):
    """A client with a token."""
    return transport.ApiClient(Settings(URL, token="t"), dry_run)


def test_a_call(network):
    sent = network(b'{"network":{"id":"n"}}').sent
    assert client().call("p.S", "Get", {"id": "n"}) == {"network": {"id": "n"}}
    path, message, headers = sent[0]
    assert (path, message) == ("/p.S/Get", {"id": "n"})
    assert headers["Authorization"] == "Bearer t"


@pytest.mark.parametrize("method,path", [
    ("Create", "/dry-run/p.S/Create"), ("List", "/p.S/List"), ("Set", "/dry-run/p.S/Set")])
def test_check_mode_asks_for_dry_runs(network, method, path):
    sent = network(b"{}").sent
    client(dry_run=True).call("p.S", method)
    assert sent[0][0] == path


@pytest.mark.parametrize("method,headers,answers,calls", [
    ("Get", {}, [away, away, b"{}"], 3),
    ("Get", {}, [RESET, b"{}"], 2),
    ("Create", {}, [UNREACHED, b"{}"], 2),
    ("Create", {"Idempotency-Key": "k"}, [RESET, b"{}"], 2),
])
def test_what_is_repeated(network, method, headers, answers, calls):
    sent = network(*answers).sent
    client().call("p.S", method, {}, headers)
    assert len(sent) == calls


@pytest.mark.parametrize("method,answers,code", [
    ("Create", [RESET], "unavailable"),
    ("Create", [away], "unavailable"),
    ("Get", [refused("resource_exhausted")], "resource_exhausted"),
    ("Get", [away] * 5, "unavailable"),
    ("Get", [b"<html>"], "unknown"),
    ("Get", [HTTPError(URL, 404, "", {}, io.BytesIO(b"not here"))], "unknown"),
])
def test_what_is_not(network, method, answers, code):
    given = network(*answers)
    with pytest.raises(transport.ApiError) as error:
        client().call("p.S", method)
    assert error.value.code == code and not given.answers


def test_errors_have_their_number(network):
    network(refused("resource_exhausted"))
    with pytest.raises(transport.ApiError) as error:
        client().call("p.S", "Create")
    assert error.value.number == "MM-1203"
    assert error.value.describe() == "MM-1203 none is free (resource_exhausted, p.S/Create)"


def test_finding(network):
    network(refused("not_found", "MM-1001 none", 404), b"{}", refused("permission_denied"))
    assert client().find("p.S", "Get", {}) is None
    assert client().find("p.S", "Get", {}) == {}
    with pytest.raises(transport.ApiError):
        client().find("p.S", "Get", {})
