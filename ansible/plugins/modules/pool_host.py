#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: pool_host
short_description: Machines in pools
version_added: 0.1.0
description:
  - Puts a machine into a pool, changes it as a host, and takes it out. What a task leaves out stays as it
    is. It needs an admin role.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.resource
  - metalmesh.metalmesh.resource.state
  - metalmesh.metalmesh.resource.labels
  - metalmesh.metalmesh.policies.host
options:
  machine:
    description: UUID of the machine.
    type: str
    required: true
    aliases: [id]
  pool:
    description: Pool of the machine. It is required for a machine that is in none.
    type: str
  annotations:
    description: Texts by which nothing is decided, all of them. The pool says which of them claims repeat.
    type: dict
  taints:
    description: Taints, which a claim has to tolerate.
    type: list
    elements: dict
    suboptions:
      key:
        description: Key.
        type: str
        required: true
      value:
        description: Value.
        type: str
        default: ''
  failure_domain:
    description: Failure domain.
    type: str
  cordon:
    description: Why the host gets no new claim. Empty means that it may get one.
    type: str
  force:
    description: Whether O(state=absent) takes out a host that a claim has, which loses it.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: A host of the pool
  metalmesh.metalmesh.pool_host:
    machine: 5c1d5a3e-3b5b-4b8e-9f62-0d7f4dc4a0a1
    pool: shared
    labels: {infra-kind: medium}
    failure_domain: az1
"""

RETURN = r"""
id:
  description: UUID of the machine.
  returned: when it is in a pool
  type: str
pool_host:
  description: The host. In check mode as it would be.
  returned: success
  type: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.codecs import Pairs
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.plan import Field
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.pools import (
    POLICIES, TREE, Replaced)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import Refusal
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.runner import run

TAINT = {"key": {"type": "str", "required": True, "no_log": False},
         "value": {"type": "str", "default": ""}}


class PoolHost(Replaced):
    """A machine as a host of a pool."""

    kind = "pool_host"
    key = "host"
    identity = "machine"
    options = {
        "machine": {"type": "str", "required": True, "aliases": ["id"]},
        "force": {"type": "bool", "default": False},
    }

    @classmethod
    def table(cls):
        return (
            Field("pool", "pool"),
            Field("annotations", "annotations", Pairs(), spec={"type": "dict"}),
            Field("taints", "taints", TREE,
                  spec={"type": "list", "elements": "dict", "options": TAINT}),
            Field("failure_domain", "failureDomain"),
            Field("only", "only", TREE, spec=POLICIES),
            Field("cordon", "cordon"),
        )

    @property
    def name(self):
        return self.params["machine"]

    def find(self):
        hosts = self.client.call(self.service, "ListHosts").get("hosts", [])
        return self.only([one for one in hosts if one.get("machine") == self.name])

    def prepare(self, actual):
        if actual is None and not self.params["pool"]:
            raise Refusal("machine %s is in no pool; give the pool" % self.name)

    def _set(self, plan, actual):
        request = dict(self.whole(plan, actual), machine=self.name,
                       expectedGeneration=self.generation(actual))
        return self.client.call(self.service, "SetHost", request).get("host")

    def create(self, plan):
        return self._set(plan, None)

    def update(self, plan, actual):
        return self._set(plan, actual)

    def delete(self, actual):
        request = {"machine": self.name, "force": self.params["force"]}
        self.client.call(self.service, "RemoveHost", request)


def main():
    run(PoolHost)


if __name__ == "__main__":
    main()
