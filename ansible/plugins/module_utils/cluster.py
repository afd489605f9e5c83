# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Control nodes: which there are, and the step that brings one to what a task wants."""
from __future__ import annotations

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import Refusal

SERVICE = "metalmesh.admin.v1.ClusterService"
# Log entries that a node which has caught up may be behind the leader.
BEHIND_MAX = 100
LEADER, VOTER, LEARNER = "NODE_ROLE_LEADER", "NODE_ROLE_VOTER", "NODE_ROLE_LEARNER"
# Roles of nodes that have joined and were not removed.
ROLES = (LEADER, VOTER, LEARNER)


def status(client):
    """The cluster as its leader sees it."""
    return client.call(SERVICE, "Status", {})


def find_node(cluster, params):
    """The node that a task names; None if there is none."""
    for node in cluster.get("nodes", []):
        by_id = params.get("id") is not None and int(node.get("id", 0)) == params["id"]
        address = params.get("peer_address")
        if by_id or address and node.get("peerAddress") == address:
            return node
    return None


def next_step(node, state):
    """The method that brings a node to a state; None if it is there."""
    role = (node or {}).get("role")
    if state == "absent":
        return "Remove" if node is not None else None
    if role not in ROLES:
        raise Refusal("there is no such control node; join it first: role control, or metalmesh "
                      "cluster join")
    if state == "voter":
        return "Promote" if role == LEARNER else None
    if role == LEARNER:
        raise Refusal("control node %s has no vote and cannot lead; give it one first: state=voter"
                      % node.get("id"))
    return "TransferLeader" if role == VOTER else None


def is_healthy(cluster, nodes_min):
    """True if somebody leads, so many nodes have a vote, and all of them have caught up."""
    voters = [node for node in cluster.get("nodes", []) if node.get("role") in (LEADER, VOTER)]
    caught_up = all(int(node.get("behind", 0)) <= BEHIND_MAX for node in voters)
    return int(cluster.get("leader", 0)) != 0 and len(voters) >= nodes_min and caught_up
