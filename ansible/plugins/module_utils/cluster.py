# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Control nodes: which there are, and the step that brings one to what a task wants."""
from __future__ import annotations

import calendar
import time

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import Refusal

SERVICE = "metalmesh.admin.v1.ClusterService"
# Log entries that a node which has caught up may be behind the leader.
BEHIND_MAX = 100
# Longest time since a node answered the leader for which it counts as present, seconds; `metalmesh
# cluster upgrade` has the same.
HEARD_WITHIN = 5
# What a node must have answered later than at the look before, seconds. The leader asks five times a
# second; the times of two looks at a node that is gone differ by less.
HEARD_AGAIN = 1
LEADER, VOTER, LEARNER = "NODE_ROLE_LEADER", "NODE_ROLE_VOTER", "NODE_ROLE_LEARNER"
# Roles of nodes that have joined and were not removed.
ROLES = (LEADER, VOTER, LEARNER)


def status(client):
    """The cluster as its leader sees it."""
    return client.call(SERVICE, "Status", {})


def find_node(cluster, params):
    """The node that a task names; None if there is none.

    By address a member goes before invitations, which stay where joining failed: the newest counts.
    """
    number, address = params.get("id"), params.get("peer_address")
    found = [node for node in cluster.get("nodes", [])
             if number is not None and int(node.get("id", 0)) == number
             or address and node.get("peerAddress") == address]
    return max(found, key=lambda node: (node.get("role") in ROLES, int(node.get("id", 0))), default=None)


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


def is_heard(cluster, node):
    """True if a node answered the leader lately.

    Both times are by the clock of the leader, who hears itself at every look.
    """
    if int(node.get("id", 0)) == int(cluster.get("leader", 0)):
        return True
    newest = [seconds_of(one["heardAt"]) for one in cluster.get("nodes", []) if one.get("heardAt")]
    return bool(node.get("heardAt")) and max(newest) - seconds_of(node["heardAt"]) <= HEARD_WITHIN


def lack_of(cluster, node):
    """The reason why a node is not whole; None if it is."""
    number, address = node.get("id"), node.get("peerAddress") or "an unknown address"
    if not is_heard(cluster, node):
        return "control node %s at %s does not answer" % (number, address)
    # The leader alone knows it: without a number nothing is known.
    if node.get("behind") is None:
        return "nobody knows how far control node %s at %s is behind" % (number, address)
    if int(node["behind"]) > BEHIND_MAX:
        return "control node %s at %s is %s entries behind" % (number, address, node["behind"])
    return None


def problem_of(cluster, nodes_min):
    """The reason why a cluster is not healthy; None if somebody leads, so many nodes have a vote, and
    every one of them answers and has caught up."""
    if int(cluster.get("leader", 0)) == 0:
        return "nobody leads"
    voters = voters_of(cluster)
    if len(voters) < nodes_min:
        return "%d nodes have a vote instead of %d" % (len(voters), nodes_min)
    return next((lack for lack in (lack_of(cluster, node) for node in voters) if lack), None)


def silence_of(before, after):
    """The reason why two looks at a cluster do not prove that every voter is there; None if they do.

    A node that was stopped a moment ago still counts as heard: it is there if the leader heard it again.
    """
    if (before.get("leader"), before.get("term")) != (after.get("leader"), after.get("term")):
        return "another node leads since the last look"
    heard = {node.get("id"): node.get("heardAt") for node in voters_of(before)}
    for node in voters_of(after):
        if int(node.get("id", 0)) == int(after.get("leader", 0)):
            continue
        earlier = heard.get(node.get("id"))
        if not earlier or seconds_of(node["heardAt"]) - seconds_of(earlier) < HEARD_AGAIN:
            return "control node %s at %s has not answered again" % (
                node.get("id"), node.get("peerAddress"))
    return None


def voters_of(cluster):
    """The nodes with a vote."""
    return [node for node in cluster.get("nodes", []) if node.get("role") in (LEADER, VOTER)]


def seconds_of(text):
    """A timestamp of the API (RFC 3339, UTC) as seconds since 1970."""
    whole, _point, fraction = text.rstrip("Z").partition(".")
    seconds = calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S"))
    return seconds + float("0." + (fraction or "0"))
