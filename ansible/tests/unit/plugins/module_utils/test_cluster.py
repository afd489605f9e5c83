# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Steps of control nodes."""
from __future__ import annotations

import pytest

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.cluster import (
    find_node, lack_of, next_step, problem_of, silence_of)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import Refusal


def node(number, role, behind="0", heard=0.0):
    """A control node that the leader heard so many seconds after noon."""
    fields = {"behind": behind, "heardAt": heard is not None and at(heard)}
    known = {name: value for name, value in fields.items() if value}
    return dict(known, id=str(number), role="NODE_ROLE_" + role,
                peerAddress="control-%d:4444" % number)


def at(seconds):
    """A time as the API writes it."""
    whole = int(seconds // 1)
    minute, second = divmod(12 * 3600 + whole, 60)
    text = "2026-01-10T%02d:%02d:%02d" % (minute // 60, minute % 60, second)
    fraction = ("%.3f" % (seconds - whole))[1:] if seconds != whole else ""
    return text + fraction + "Z"


@pytest.mark.parametrize("role,state,step", [
    ("LEARNER", "voter", "Promote"), ("VOTER", "voter", None), ("LEADER", "voter", None),
    ("VOTER", "leader", "TransferLeader"), ("LEADER", "leader", None),
    ("VOTER", "absent", "Remove"), ("INVITED", "absent", "Remove")])
def test_steps(role, state, step):
    assert next_step(node(2, role), state) == step


def test_steps_that_cannot_be():
    assert next_step(None, "absent") is None
    for role, state in ((None, "voter"), ("INVITED", "voter"), ("LEARNER", "leader")):
        with pytest.raises(Refusal):
            next_step(role and node(2, role), state)


@pytest.mark.parametrize("nodes,leader,nodes_min,problem", [
    ([node(1, "LEADER"), node(2, "VOTER")], "1", 2, None),
    ([node(1, "LEADER"), node(2, "VOTER", "5000")], "1", 2, "5000 entries behind"),
    ([node(1, "LEADER"), node(2, "LEARNER")], "1", 2, "1 nodes have a vote instead of 2"),
    ([node(1, "VOTER")], "0", 1, "nobody leads"),
    ([node(1, "LEADER"), node(2, "INVITED", "9999", None)], "1", 1, None),
    # One that is dead lacks nothing while nobody writes.
    ([node(1, "LEADER", heard=60), node(2, "VOTER", "0", 54.5)], "1", 2, "2 at control-2:4444 does not"),
    ([node(1, "LEADER", heard=60), node(2, "VOTER", "0", 55.5)], "1", 2, None),
    # A leader that was just elected has not heard it.
    ([node(1, "LEADER"), node(2, "VOTER", "0", None)], "1", 2, "does not answer"),
    # Not the leader's word: nobody knows how far it is behind.
    ([node(1, "LEADER", None), node(2, "VOTER", None)], "1", 2, "nobody knows"),
    ([node(1, "LEADER"), node(2, "VOTER", None)], "1", 2, "nobody knows how far control node 2"),
    # All others are dead, and the leader does not know yet that it leads nobody.
    ([node(1, "LEADER", heard=9), node(2, "VOTER"), node(3, "VOTER")], "1", 3, "does not answer")])
def test_health(nodes, leader, nodes_min, problem):
    found = problem_of({"nodes": nodes, "leader": leader}, nodes_min)
    assert (found or "").find(problem or "") >= 0 and bool(found) == bool(problem)


@pytest.mark.parametrize("before,after,silent", [
    (0.2, 2.1, False), (0.2, 0.9, True), (0.2, 0.203, True), (None, 2.1, True)])
def test_a_node_that_was_just_stopped_is_heard_no_more(before, after, silent):
    looks = [{"leader": "1", "term": "7", "nodes": [
        node(1, "LEADER", heard=now), node(2, "VOTER", heard=heard)]}
        for now, heard in ((0.3, before), (2.3, after))]
    assert bool(silence_of(*looks)) == silent


def test_looks_at_two_leaders_prove_nothing():
    looks = [{"leader": leader, "term": term, "nodes": [
        node(1, "LEADER", heard=heard), node(2, "LEADER", heard=heard)]}
        for leader, term, heard in (("1", "7", 0), ("2", "8", 2))]
    assert "another node leads" in silence_of(*looks)


def test_a_learner_that_is_dead_gets_no_vote():
    cluster = {"leader": "1", "nodes": [node(1, "LEADER", heard=60), node(2, "LEARNER", "0", 10)]}
    assert "does not answer" in lack_of(cluster, cluster["nodes"][1])


def test_finding():
    cluster = {"nodes": [node(1, "LEADER"), node(2, "VOTER")]}
    assert find_node(cluster, {"id": 2})["id"] == "2"
    assert find_node(cluster, {"id": None, "peer_address": "control-1:4444"})["id"] == "1"
    assert find_node(cluster, {"id": 9}) is None


def test_a_member_goes_before_invitations_to_its_address():
    address = {"id": None, "peer_address": "control-2:4444"}
    invited = [dict(node(number, "INVITED"), peerAddress="control-2:4444") for number in (3, 4)]
    assert find_node({"nodes": invited}, address)["id"] == "4"
    for nodes in ([node(2, "LEARNER")] + invited, invited[:1] + [dict(node(5, "VOTER"), **{
            "peerAddress": "control-2:4444"})] + invited[1:]):
        found = find_node({"nodes": nodes}, address)
        assert found["role"] in ("NODE_ROLE_LEARNER", "NODE_ROLE_VOTER"), found
