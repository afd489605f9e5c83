#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_info
short_description: Looks at the control nodes
version_added: 0.1.0
description:
  - Shows the control nodes, and waits until they are healthy. It needs an admin role.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.info
options:
  wait:
    description:
      - Whether the module waits until a node leads, O(nodes_min) nodes have a vote, and every one of them
        has answered its leader in two looks one after the other and has caught up. After O(wait_timeout)
        the task fails, and names the node that is missing.
    type: bool
    default: false
  wait_timeout:
    description: Longest time of the wait, seconds.
    type: int
    default: 300
  nodes_min:
    description: Number of nodes with a vote that a healthy cluster has.
    type: int
    default: 1
"""

EXAMPLES = r"""
- name: The cluster is whole before the next node is touched
  metalmesh.metalmesh.cluster_info:
    wait: true
    nodes_min: 3
"""

RETURN = r"""
healthy:
  description: Whether the cluster is as O(wait) asks for. Without O(wait) it is one look, which may count a node
    that was stopped less than five seconds ago.
  returned: success
  type: bool
cluster:
  description: The cluster with its C(nodes), as its leader sees it.
  returned: success
  type: dict
"""

import time

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.cluster import (
    problem_of, silence_of, status, voters_of)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.handler import POLL
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.presentation import presented
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import Refusal
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.runner import (
    connect, fail, new_module)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.transport import ApiError

SPEC = {
    "wait": {"type": "bool", "default": False},
    "wait_timeout": {"type": "int", "default": 300},
    "nodes_min": {"type": "int", "default": 1},
}
# Errors of a node that is starting, or has no leader yet.
PASSING = ("unavailable", "unreached", "deadline_exceeded")


def observed(client, params):
    """The cluster, once it is healthy if the task waits for that, and the reason why it is not."""
    end = time.monotonic() + params["wait_timeout"]
    before = None
    while True:
        try:
            cluster = status(client)
            problem = problem_of(cluster, params["nodes_min"])
            if not params["wait"]:
                return cluster, problem
            if problem is None and len(voters_of(cluster)) > 1:
                problem = silence_of(before, cluster) if before else "it was looked at only once"
            if problem is None:
                return cluster, None
            before = cluster
        except ApiError as error:
            if not params["wait"] or error.code not in PASSING:
                raise
            before, problem = None, error.describe()
        if time.monotonic() + POLL > end:
            raise Refusal("the cluster is not healthy after %d s: %s; look at metalmesh cluster status "
                          "and metalmesh doctor" % (params["wait_timeout"], problem))
        time.sleep(POLL)


def main():
    module = new_module(SPEC)
    try:
        cluster, problem = observed(connect(module), module.params)
    except (ApiError, Refusal) as error:
        fail(module, error)
    module.exit_json(changed=False, healthy=problem is None, cluster=presented(cluster))


if __name__ == "__main__":
    main()
