#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: claim
short_description: Claims of a project to hosts
version_added: 0.1.0
description:
  - Creates, changes and deletes claims. A claim asks for a host with certain labels, and gets one of a pool
    without its project learning which.
  - A claim is found by its name. What a task leaves out stays as it is.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.resource
  - metalmesh.metalmesh.resource.state
  - metalmesh.metalmesh.resource.labels
  - metalmesh.metalmesh.resource.wait
options:
  name:
    description: Name, unique in the project.
    type: str
    required: true
  project:
    description: UUID of the project.
    type: str
    required: true
  wait:
    description:
      - Whether the module waits until the claim has a host, with O(image) until its system runs, and with
        O(state=absent) until the host is wiped.
  pools:
    description: Pools to look in. Default are all that admit the project.
    type: list
    elements: str
  selector:
    description: Labels that the host must have.
    type: dict
    suboptions:
      match_labels:
        description: Labels with their values.
        type: dict
      match_expressions:
        description: Further conditions.
        type: list
        elements: dict
        suboptions:
          key:
            description: Key of a label.
            type: str
            required: true
          operator:
            description: Condition.
            type: str
            required: true
            choices: [In, NotIn, Exists, DoesNotExist]
          values:
            description: Values of V(In) and V(NotIn).
            type: list
            elements: str
  preferred:
    description: Labels that make a host better than others. The one with the largest sum is chosen.
    type: list
    elements: dict
    suboptions:
      weight:
        description: Weight, 1 to 100.
        type: int
        required: true
      selector:
        description: Labels that the host has.
        type: dict
        required: true
        suboptions:
          match_labels:
            description: Labels with their values.
            type: dict
          match_expressions:
            description: Further conditions.
            type: list
            elements: dict
            suboptions:
              key:
                description: Key of a label.
                type: str
                required: true
              operator:
                description: Condition.
                type: str
                required: true
                choices: [In, NotIn, Exists, DoesNotExist]
              values:
                description: Values of V(In) and V(NotIn).
                type: list
                elements: str
  tolerations:
    description: Taints that are no obstacle.
    type: list
    elements: dict
    suboptions:
      key:
        description: Key of the taint.
        type: str
        required: true
      value:
        description: Value of the taint. Default is any.
        type: str
  failure_domain:
    description: Failure domain of the host.
    type: dict
    suboptions:
      name:
        description: Name of the domain.
        type: str
        required: true
      required:
        description: Whether no other one will do.
        type: bool
        default: false
  priority:
    description: Priority among the claims that wait, 0 to 1000.
    type: int
  reuse:
    description: A host that an earlier claim of the project had.
    type: dict
    suboptions:
      key:
        description: Key that both claims name.
        type: str
        required: true
      required:
        description: Whether no other host will do.
        type: bool
        default: false
      keep:
        description: How long the host is kept for the next claim, such as V(30m).
        type: str
        default: 0s
      wipe:
        description:
          - The wipe that is enough for the next claim, not below the limit of the pool. With V(metadata)
            partition tables and signatures go, and the data may stay. Default is what the pool asks for
            between two projects.
        type: str
        choices: [metadata, erase, sanitize]
  spread:
    description: Claims of the project with the same text are spread over racks.
    type: str
  rebind:
    description: Whether a claim whose host is taken away waits for another one.
    type: bool
  paused:
    description: Whether nothing is done for the claim.
    type: bool
  powered_on:
    description: Whether the host is to be on once it is installed.
    type: bool
  image:
    description: Image. Without one the host is only bound; an empty text takes the image away.
    type: str
  filesystem_layout:
    description: Filesystem layout. Default is the one that fits size and image.
    type: str
  hostname:
    description: Host name of the system. Default is O(name), if it can be one.
    type: str
  networks:
    description: Networks, which an image needs.
    type: list
    elements: dict
    suboptions:
      network:
        description: Id of the network.
        type: str
        required: true
      ips:
        description: Addresses that the project has. Default is a new one of each family.
        type: list
        elements: str
  ssh_public_keys:
    description: Public keys that may log in.
    type: list
    elements: str
  user_data:
    description: cloud-init or Ignition, as text or base64. An empty text removes it.
    type: str
"""

EXAMPLES = r"""
- name: A host with an image
  metalmesh.metalmesh.claim:
    name: web-1
    project: "{{ web.id }}"
    selector:
      match_labels: {infra-kind: medium}
    image: debian-12
    powered_on: true
    networks: [{network: internet}]
    ssh_public_keys: ["{{ lookup('file', '~/.ssh/id_ed25519.pub') }}"]
    wait: true
"""

RETURN = r"""
id:
  description: UUID of the claim.
  returned: when there is one
  type: str
claim:
  description: The claim. In check mode as it would be.
  returned: success
  type: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.claims import spec_fields
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.handler import Handler
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.plan import (
    create_request, update_request)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.presentation import get_path
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import Refusal
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.runner import run

OVER = ("releasing", "gone")


class Claim(Handler):
    """A claim that is not over, found by its name."""

    kind = "claim"
    key = "claim"
    service = "metalmesh.tenant.v1.ClaimService"
    identity = "uuid"
    waits = True
    labels_read = "labels"
    plain_labels = True
    options = {
        "name": {"type": "str", "required": True},
        "project": {"type": "str", "required": True},
    }

    @classmethod
    def table(cls):
        return spec_fields()

    def scope(self):
        return {"project": self.params["project"]}

    def address(self, actual=None):
        return dict(self.scope(), claim=self.name)

    def find(self):
        return (self.client.find(self.service, "Get", self.address()) or {}).get("claim")

    def plan(self, actual, state):
        # A claim that is being released is as good as gone, and its name is not free yet.
        if state == "absent" and get_path(actual or {}, "status.state") in OVER:
            actual = None
        return super().plan(actual, state)

    def prepare(self, actual):
        if get_path(actual or {}, "status.state") in OVER:
            raise Refusal("claim %s is being released; wait until it is gone" % self.name)

    def create(self, plan):
        request = dict(create_request(self.fields, plan.wanted), name=self.name, **self.scope())
        return self.client.call(self.service, "Create", request).get("claim")

    def update(self, plan, actual):
        changed = update_request(plan, actual)
        request = dict(self.address(), expectedGeneration=actual["generation"])
        if "labels" in changed:
            request["labels"] = {"labels": changed["labels"]}
        if "spec" in changed:
            spec = dict(actual.get("spec", {}), **changed["spec"])
            # An empty image or layout is none; the user data alone tells empty from none.
            request["spec"] = {name: value for name, value in spec.items()
                               if value != "" or name == "userData"}
        return self.client.call(self.service, "Update", request).get("claim")

    def delete(self, actual):
        request = dict(self.address(), expectedUuid=actual["uuid"])
        self.client.call(self.service, "Delete", request)

    def is_settled(self, actual):
        state = get_path(actual or {}, "status.state")
        if state == "lost" and not get_path(actual, "spec.rebind"):
            raise Refusal("claim %s lost its host; delete it, or set rebind" % self.name)
        return state == "active" if get_path(actual or {}, "spec.image") else state == "bound"

    def is_gone(self, actual):
        # The record of a claim that is over is kept for a day.
        return get_path(actual or {}, "status.state") in (None, "gone")

    def describe(self, actual):
        status = (actual or {}).get("status", {})
        reason = status.get("pendingReason")
        return "it is %s%s" % (status.get("state", "gone"), " (%s)" % reason if reason else "")


def main():
    run(Claim)


if __name__ == "__main__":
    main()
