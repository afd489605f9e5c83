#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: pool
short_description: Pools of hosts that projects claim
version_added: 0.1.0
description:
  - Creates, changes and deletes pools. What a task leaves out stays as it is. It needs an admin role.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.resource
  - metalmesh.metalmesh.resource.state
  - metalmesh.metalmesh.resource.labels
  - metalmesh.metalmesh.policies.pool
options:
  id:
    description: Id.
    type: str
    required: true
  description:
    description: Free text.
    type: str
  published_labels:
    description:
      - Keys of the hosts' labels that projects see and select by. One that ends with V(*) stands for all
        that begin so.
    type: list
    elements: str
  wipe_floor:
    description: The least by which disks are wiped. With V(sanitize) they erase themselves.
    type: str
    choices: [erase, sanitize]
  reuse_max:
    description:
      - Longest time for which a host is kept for the next claim of its project, such as V(1h). V(0s) means
        none.
    type: str
  reuse_floor:
    description:
      - The least by which a host is wiped that is kept for the next claim of its project, at most
        O(wipe_floor). With V(metadata) its partition tables and signatures go, and its data may stay.
        Default is O(wipe_floor).
    type: str
    choices: [metadata, erase, sanitize]
  metadata:
    description:
      - Labels and annotations of the hosts that claims repeat in their status. A key is published if one of
        the rules names it.
    type: dict
    suboptions:
      labels:
        description: Rules of labels.
        type: dict
        suboptions:
          keys:
            description: Keys.
            type: list
            elements: str
          prefixes:
            description: Beginnings of keys.
            type: list
            elements: str
          patterns:
            description: Regular expressions for whole keys.
            type: list
            elements: str
      annotations:
        description: Rules of annotations.
        type: dict
        suboptions:
          keys:
            description: Keys.
            type: list
            elements: str
          prefixes:
            description: Beginnings of keys.
            type: list
            elements: str
          patterns:
            description: Regular expressions for whole keys.
            type: list
            elements: str
  evict_after:
    description:
      - Claims that the policies do not admit any more lose their host after this time. V(0s) means that
        they keep it.
    type: str
"""

EXAMPLES = r"""
- name: A pool for all clusters
  metalmesh.metalmesh.pool:
    id: shared
    published_labels: [infra-kind, "gpu-*"]
    policies:
      - name: production
        pattern: team-(blue|green)-.*
        priority_max: 500
"""

RETURN = r"""
id:
  description: Id of the pool.
  returned: when there is one
  type: str
pool:
  description: The pool. In check mode as it would be.
  returned: success
  type: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.codecs import Duration, Items
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.plan import Field
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.pools import (
    METADATA, POLICIES, TREE, Metadata, Replaced)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.runner import run


class Pool(Replaced):
    """A pool."""

    kind = "pool"
    key = "pool"
    options = {"id": {"type": "str", "required": True}}

    @classmethod
    def table(cls):
        return (
            Field("description", "description"),
            Field("policies", "policies", TREE, spec=POLICIES),
            Field("published_labels", "publishedLabels", Items(ordered=False),
                  spec={"type": "list", "elements": "str"}),
            Field("wipe_floor", "wipeFloor",
                  spec={"type": "str", "choices": ["erase", "sanitize"]}),
            Field("reuse_max", "reuseMax", Duration()),
            Field("reuse_floor", "reuseFloor",
                  spec={"type": "str", "choices": ["metadata", "erase", "sanitize"]}),
            Field("metadata", "metadata", Metadata(), spec=METADATA),
            Field("evict_after", "evictAfter", Duration()),
        )

    @property
    def name(self):
        return self.params["id"]

    def find(self):
        return (self.client.find(self.service, "Get", {"pool": self.name}) or {}).get("pool")

    def _set(self, plan, actual):
        pool = dict(self.whole(plan, actual), id=self.name)
        for field in ("reuseMax", "evictAfter"):
            if pool.get(field) == "0s":
                del pool[field]
        request = {"pool": pool, "expectedGeneration": self.generation(actual)}
        return self.client.call(self.service, "Set", request).get("pool")

    def create(self, plan):
        return self._set(plan, None)

    def update(self, plan, actual):
        return self._set(plan, actual)

    def delete(self, actual):
        self.client.call(self.service, "Remove", {"pool": self.name})


def main():
    run(Pool)


if __name__ == "__main__":
    main()
