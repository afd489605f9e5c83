# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Networks and addresses of allocations, their keys, and how far they are."""
from __future__ import annotations

import base64

import pytest

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.allocation import (
    Allocation, Image, parsed_networks, placed_addresses, request_key)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import Refusal
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.transport import as_base64


@pytest.mark.parametrize("networks,addresses,placed", [
    (["a"], [], [{"network": "a"}]),
    (["a:auto", "b:noauto"], [("10.0.0.1", "b")],
     [{"network": "a"}, {"network": "b", "ips": ["10.0.0.1"]}]),
    (["a:b:auto"], [], [{"network": "a:b"}]),
    (["fd00:1"], [], [{"network": "fd00:1"}]),
    ([{"network": "a", "ips": ["10.0.0.1"]}], [], [{"network": "a", "ips": ["10.0.0.1"]}]),
    ([], [("10.0.0.1", "c")], [{"network": "c", "ips": ["10.0.0.1"]}]),
])
def test_networks(networks, addresses, placed):
    assert placed_addresses(parsed_networks(networks), addresses) == placed


@pytest.mark.parametrize("networks", [["a:noauto"], [{"ips": ["10.0.0.1"]}]])
def test_networks_that_cannot_be(networks):
    with pytest.raises(Refusal):
        placed_addresses(parsed_networks(networks), [])


@pytest.mark.parametrize("wanted,observed,same", [
    ("debian-12", "debian-12.1.2", True), ("debian-12.1.2", "debian-12.1.2", True),
    ("debian-1", "debian-12.1.2", False), ("debian-12.1", "debian-12.2", False)])
def test_images(wanted, observed, same):
    assert Image().same(wanted, observed) == same


def test_keys_follow_the_request():
    first = {"name": "a", "labels": {"x": "1", "y": "2"}}
    again = {"labels": {"y": "2", "x": "1"}, "name": "a"}
    assert request_key(first, 0) == request_key(again, 0)
    assert len({request_key(first, 0), request_key(first, 1), request_key({}, 0)}) == 3
    assert len(request_key(first, 15)) <= 256


def test_user_data():
    text = "#cloud-config\n{}\n"
    encoded = base64.b64encode(text.encode()).decode()
    assert as_base64(text) == encoded
    assert as_base64(encoded + "\n") == encoded
    assert base64.b64decode(as_base64("not base64!")) == b"not base64!"


def machine(*events, state=""):
    """A machine with events, oldest first."""
    listed = [{"event": "MACHINE_PROVISIONING_EVENT_TYPE_" + event, "time": "2026-01-0%d" % day}
              for day, event in enumerate(events, start=1)]
    return {"recentProvisioningEvents": {"events": listed[::-1], "state": state}}


@pytest.mark.parametrize("actual,settled", [
    (None, False), ({}, False), (machine("WAITING", "INSTALLING"), False),
    (machine("INSTALLING", "PHONED_HOME"), True), (machine("PHONED_HOME", "CRASHED"), False)])
def test_waiting(actual, settled):
    waiting = Allocation(None, {"name": "a", "id": None, "project": "p"})
    assert waiting.is_settled(actual) == settled


def test_a_crash_loop_ends_the_wait():
    waiting = Allocation(None, {"name": "a", "id": None, "project": "p"})
    with pytest.raises(Refusal, match="crash loop"):
        waiting.is_settled(machine("CRASHED", state="MACHINE_PROVISIONING_EVENT_STATE_CRASHLOOP"))
