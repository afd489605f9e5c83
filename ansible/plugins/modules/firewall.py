#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: firewall
short_description: Firewalls of a project
version_added: 0.1.0
description:
  - Allocates a machine as a firewall, changes what can be changed of it, and frees it.
  - O(rules) are those that the firewall starts with. M(metalmesh.metalmesh.firewall_rules) changes the
    rules of a firewall that runs.
  - Keys and user data of a firewall need an admin role.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.resource
  - metalmesh.metalmesh.resource.state
  - metalmesh.metalmesh.resource.labels
  - metalmesh.metalmesh.resource.owned
  - metalmesh.metalmesh.resource.wait
  - metalmesh.metalmesh.allocation
options:
  rules:
    description: Rules that the firewall starts with.
    type: dict
    suboptions:
      egress:
        description: Flows from private networks.
        type: list
        elements: dict
        suboptions:
          comment:
            description: At most 100 of V(a-z), blank, V(_) and V(-).
            type: str
          protocol:
            description: Protocol.
            type: str
            choices: [tcp, udp]
            default: tcp
          ports:
            description: Destination ports.
            type: list
            elements: int
            required: true
          to:
            description: Destination prefixes.
            type: list
            elements: str
            required: true
      ingress:
        description: Flows to private networks.
        type: list
        elements: dict
        suboptions:
          comment:
            description: At most 100 of V(a-z), blank, V(_) and V(-).
            type: str
          protocol:
            description: Protocol.
            type: str
            choices: [tcp, udp]
            default: tcp
          ports:
            description: Destination ports.
            type: list
            elements: int
            required: true
          source:
            description: Source prefixes.
            type: list
            elements: str
            required: true
          to:
            description: Destination prefixes. Default is all.
            type: list
            elements: str
"""

EXAMPLES = r"""
- name: A firewall between the tenant's network and the internet
  metalmesh.metalmesh.firewall:
    name: fw-1
    project: 0195a5b2-7c1e-7d8a-a1f2-9d5b6c0e4f11
    partition: fra-1
    size: c1-large
    image: firewall-ubuntu-3.0
    networks: [internet, tenant-network]
    rules:
      egress:
        - {comment: dns, protocol: udp, ports: [53], to: [0.0.0.0/0]}
"""

RETURN = r"""
id:
  description: UUID of the firewall.
  returned: when there is one
  type: str
firewall:
  description: The firewall, as a machine. In check mode as it would be, if the server could say.
  returned: success
  type: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.allocation import Allocation
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.codecs import Tree
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.plan import WARN, Field
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.runner import run

TEXTS = {"type": "list", "elements": "str"}
RULE = {
    "comment": {"type": "str"},
    "protocol": {"type": "str", "choices": ["tcp", "udp"], "default": "tcp"},
    "ports": {"type": "list", "elements": "int", "required": True},
}
EGRESS = dict(RULE, to=dict(TEXTS, required=True))
INGRESS = dict(RULE, source=dict(TEXTS, required=True), to=TEXTS)


class Rules(Tree):
    """Rules with the published modules' name for a source."""

    def wanted(self, value):
        ingress = [{"from" if key == "source" else key: part for key, part in rule.items()}
                   for rule in value.get("ingress") or []]
        return super().wanted({"egress": value.get("egress") or [], "ingress": ingress})


class Firewall(Allocation):
    """A machine that is a firewall."""

    kind = "firewall"
    allocation_type = "firewall"

    @classmethod
    def table(cls):
        rules = Field("rules", "allocation.firewallRules", Rules(enums={"protocol": "IP_PROTOCOL"}),
                      create="firewallSpec.firewallRules", update=None, fixed=WARN,
                      spec={"type": "dict", "options": {
                          "egress": {"type": "list", "elements": "dict", "options": EGRESS},
                          "ingress": {"type": "list", "elements": "dict", "options": INGRESS}}})
        return super().table() + (rules,)


def main():
    run(Firewall)


if __name__ == "__main__":
    main()
