# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Tickets of agents, and waits for control nodes, against a client that is told what to answer."""
from __future__ import annotations

import pytest

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import Refusal
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.transport import ApiError
from ansible_collections.metalmesh.metalmesh.plugins.modules import (
    cluster_info, cluster_node, join_ticket)
from ansible_collections.metalmesh.metalmesh.tests.unit.plugins.modules.test_calls import FakeClient

MADE = {"ticket": {"id": "t", "kind": "AGENT_KIND_CORE"}, "secret": "s"}
IN_FORCE = {"id": "spiffe://d/partition/fra/core/leaf-1", "expiresAt": "2999-01-01T00:00:00Z"}
OVER = dict(IN_FORCE, expiresAt="2020-01-01T00:00:00Z")
REVOKED = dict(IN_FORCE, revokedAt="2026-01-02T00:00:00Z", revokedReason="stolen")


def order(identity, check_mode=False, **options):
    """The result of a task that orders a ticket for an agent with an identity, and the calls."""
    params = {option: spec.get("default") for option, spec in join_ticket.SPEC.items()}
    params.update({"kind": "core", "partition": "fra", "agent": "leaf-1", "key_sha256": "k"}, **options)
    client = FakeClient({"IdentityService.Get": [{"identity": identity} if identity else None],
                         "JoinService.Create": [MADE]}, dry_run=check_mode)
    try:
        return join_ticket.settle(client, params), client
    except Refusal as refusal:
        return str(refusal), client


@pytest.mark.parametrize("identity,options,made", [
    (None, {}, True), (OVER, {}, True), (IN_FORCE, {}, True),
    (None, {"unless_joined": True}, True), (OVER, {"unless_joined": True}, True),
    (IN_FORCE, {"unless_joined": True}, False),
    (IN_FORCE, {"unless_joined": True, "reenrol": True}, False),
    (REVOKED, {"reenrol": True}, True),
    (REVOKED, {"reenrol": True, "unless_joined": True}, True)])
def test_tickets_of_agents(identity, options, made):
    result, client = order(identity, **options)
    assert result["changed"] == made and ("secret" in result) == made
    assert [method for method, _message in client.writes()] == (["Create"] if made else [])
    # The server wants to hear it too.
    says = [message.get("reenrol", False) for _method, message in client.writes()]
    assert says == ([identity is REVOKED] if made else [])


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize("options", [{}, {"unless_joined": True}])
def test_a_revoked_agent_stays_out(options, check_mode):
    refusal, client = order(REVOKED, check_mode, **options)
    assert "was revoked at 2026-01-02T00:00:00Z (stolen)" in refusal and "reenrol" in refusal
    assert client.writes() == []
    assert client.calls[0][2] == {"id": "partition/fra/core/leaf-1"}


def test_check_mode_orders_no_ticket():
    result, client = order(None, check_mode=True)
    assert result == {"changed": True} and client.writes() == []


def seen(leader, heard):
    """A look at a cluster of two; `heard` has the seconds at which the leader heard the nodes."""
    nodes = [{"id": str(number), "role": "NODE_ROLE_" + ("LEADER" if number == leader else "VOTER"),
              "behind": "0", "peerAddress": "n%d" % number,
              "heardAt": "2026-01-10T12:00:%02dZ" % second}
             for number, second in enumerate(heard, start=1)]
    return {"leader": str(leader), "term": str(leader), "nodes": nodes}


@pytest.fixture(name="clock")
def _clock(monkeypatch):
    """Time that passes by sleeping alone."""
    class Clock:
        now = 0.0

        def monotonic(self):
            return self.now

        def sleep(self, seconds):
            self.now += seconds

    clock = Clock()
    monkeypatch.setattr(cluster_info, "time", clock)
    monkeypatch.setattr(cluster_node, "time", clock)
    return clock


def test_a_wait_sees_that_a_stopped_node_came_back(clock):
    # Stopped at second 2, back at second 7: at the first look it still counts as heard.
    looks = [seen(1, pair) for pair in ((2, 2), (4, 2), (6, 2), (8, 7), (10, 10))]
    client = FakeClient({"ClusterService.Status": looks + [ApiError("unknown", "too late")]})
    params = {"wait": True, "wait_timeout": 60, "nodes_min": 2}
    assert cluster_info.observed(client, params) == (looks[3], None)
    assert clock.now == 6


def test_a_wait_for_a_dead_voter_ends_with_its_name(clock):
    looks = [seen(1, (second, 2)) for second in range(2, 40, 2)]
    client = FakeClient({"ClusterService.Status": looks})
    with pytest.raises(Refusal, match="control node 2 at n2 does not answer"):
        cluster_info.observed(client, {"wait": True, "wait_timeout": 20, "nodes_min": 2})
    assert clock.now <= 20
    _cluster, problem = cluster_info.observed(
        FakeClient({"ClusterService.Status": looks[5:]}), {"wait": False, "wait_timeout": 0, "nodes_min": 2})
    assert "does not answer" in problem


@pytest.mark.usefixtures("clock")
def test_a_wait_outlives_a_restart_of_the_api_and_a_new_leader():
    answers = [seen(1, (0, 0)), ApiError("unreached", "refused"), seen(2, (4, 4)), seen(2, (6, 6))]
    client = FakeClient({"ClusterService.Status": answers})
    found, problem = cluster_info.observed(client, {"wait": True, "wait_timeout": 60, "nodes_min": 2})
    assert problem is None and found == answers[3]


@pytest.mark.usefixtures("clock")
def test_a_dead_node_gets_no_vote_and_does_not_lead():
    look = seen(1, (30, 2))
    client = FakeClient({"ClusterService.Status": [look], "ClusterService.TransferLeader": [{}]})
    params = {"id": 2, "peer_address": None, "state": "leader", "wait": True, "wait_timeout": 10}
    with pytest.raises(Refusal, match="does not answer"):
        cluster_node.settle(client, params, False)
    assert {method for _service, method, _message, _headers in client.calls} == {"Status"}
