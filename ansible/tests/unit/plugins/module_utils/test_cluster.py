# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Steps of control nodes."""
from __future__ import annotations

import pytest

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.cluster import (
    find_node, is_healthy, next_step)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import Refusal


def node(number, role, behind="0"):
    """A control node."""
    return {"id": str(number), "role": "NODE_ROLE_" + role, "behind": behind,
            "peerAddress": "control-%d:4444" % number}


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


@pytest.mark.parametrize("nodes,leader,nodes_min,healthy", [
    ([node(1, "LEADER"), node(2, "VOTER")], "1", 2, True),
    ([node(1, "LEADER"), node(2, "VOTER", "5000")], "1", 2, False),
    ([node(1, "LEADER"), node(2, "LEARNER")], "1", 2, False),
    ([node(1, "VOTER")], "0", 1, False),
    ([node(1, "LEADER"), node(2, "INVITED", "9999")], "1", 1, True)])
def test_health(nodes, leader, nodes_min, healthy):
    assert is_healthy({"nodes": nodes, "leader": leader}, nodes_min) == healthy


def test_finding():
    cluster = {"nodes": [node(1, "LEADER"), node(2, "VOTER")]}
    assert find_node(cluster, {"id": 2})["id"] == "2"
    assert find_node(cluster, {"id": None, "peer_address": "control-1:4444"})["id"] == "1"
    assert find_node(cluster, {"id": 9}) is None
