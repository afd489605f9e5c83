#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_node
short_description: Control nodes
version_added: 0.1.0
description:
  - Gives a control node that has joined its vote, makes it the leader, or takes it out. It needs an admin
    role.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.resource
  - metalmesh.metalmesh.resource.wait
attributes:
  check_mode:
    support: full
    description: The change is computed. The server judges a removal by a dry run.
options:
  id:
    description: Number of the node.
    type: int
  peer_address:
    description: Address by which its peers reach the node, instead of O(id).
    type: str
  state:
    description: What the node is to be. V(absent) is for good.
    type: str
    choices: [voter, leader, absent]
    default: voter
  wait:
    description: Whether the module waits until the node has joined, answers its leader and has caught up.
"""

EXAMPLES = r"""
- name: The second node has a vote
  metalmesh.metalmesh.cluster_node:
    peer_address: control-2.example:4444
    wait: true
"""

RETURN = r"""
id:
  description: Number of the node.
  returned: when there is one
  type: int
cluster_node:
  description: The node.
  returned: success
  type: dict
"""

import time

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.cluster import (
    ROLES, find_node, lack_of, next_step, status)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.handler import (
    POLL, WAIT_OPTIONS)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.presentation import presented
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import Refusal
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.runner import (
    connect, fail, new_module)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.transport import ApiError

SERVICE = "metalmesh.admin.v1.ClusterService"
SPEC = dict({
    "id": {"type": "int"},
    "peer_address": {"type": "str"},
    "state": {"type": "str", "choices": ["voter", "leader", "absent"], "default": "voter"},
}, **WAIT_OPTIONS)
CONDITIONS = {"required_one_of": [["id", "peer_address"]],
              "mutually_exclusive": [["id", "peer_address"]]}


def ready_node(client, params):
    """The node, once it answers and has caught up if the task waits for that."""
    end = time.monotonic() + params["wait_timeout"]
    while True:
        cluster = status(client)
        node = find_node(cluster, params)
        if not params["wait"]:
            return node
        lack = "it has not joined"
        if node is not None and node.get("role") in ROLES:
            lack = lack_of(cluster, node)
        if lack is None:
            return node
        if time.monotonic() + POLL > end:
            raise Refusal("control node %s is not ready after %d s: %s; look at metalmesh cluster status"
                          % (params["id"] or params["peer_address"], params["wait_timeout"], lack))
        time.sleep(POLL)


def settle(client, params, check):
    """Brings the node to what the task wants."""
    if params["state"] == "absent":
        node = find_node(status(client), params)
    else:
        node = ready_node(client, params)
    method = next_step(node, params["state"])
    before = presented(node or {}).get("role", "absent")
    after = before if method is None else params["state"]
    # Of the three only a removal has a dry run.
    if method == "Remove" or method and not check:
        client.call(SERVICE, method, {"id": node["id"]})
    if method and not check:
        node = find_node(status(client), params) or node
    result = {"changed": method is not None, "cluster_node": presented(node or {}),
              "diff": {"before": {"role": before}, "after": {"role": after}}}
    if node:
        result["id"] = int(node["id"])
    return result


def main():
    module = new_module(SPEC, CONDITIONS)
    try:
        result = settle(connect(module), module.params, module.check_mode)
    except (ApiError, Refusal) as error:
        fail(module, error)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
