#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: ip
short_description: Addresses of a project
version_added: 0.1.0
description:
  - Allocates, changes and frees addresses.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.resource
  - metalmesh.metalmesh.resource.state
  - metalmesh.metalmesh.resource.labels
  - metalmesh.metalmesh.resource.owned
options:
  ip:
    description:
      - The address. A free one of O(network) is allocated as it is.
      - Without it the address of O(name) is meant, and control chooses a new one.
    type: str
    aliases: [id]
  name:
    description: Name, unique among the addresses of the project for this module.
    type: str
  description:
    description: Free text.
    type: str
  network:
    description: Network of a new address.
    type: str
  project:
    description: UUID of the project.
    type: str
    required: true
  type:
    description: V(static) addresses stay when their machine is freed. Default for a new one is V(ephemeral).
    type: str
    choices: [ephemeral, static]
  address_family:
    description: Family of a new address that control chooses.
    type: str
    choices: [ipv4, ipv6]
  machine:
    description: UUID of the machine of the project that a new address is for.
    type: str
  namespace:
    description:
      - Project whose namespace has the address, or V(none) for the one outside of every namespace. It is
        needed if the project has the same address in several networks.
    type: str
  tags:
    description: Labels as V(key=value) or V(key); merged with O(labels).
    type: list
    elements: str
"""

EXAMPLES = r"""
- name: An address that stays
  metalmesh.metalmesh.ip:
    name: entrance
    project: "{{ web.id }}"
    network: internet
    type: static
  register: entrance

- name: It is not needed any more
  metalmesh.metalmesh.ip:
    ip: "{{ entrance.id }}"
    project: "{{ web.id }}"
    state: absent
"""

RETURN = r"""
id:
  description: The address.
  returned: when there is one
  type: str
ip:
  description: The address with what is known of it. In check mode as it would be.
  returned: success
  type: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.codecs import Choice
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.enums import choices
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.handler import Handler
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.plan import IGNORE, Field
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import Refusal
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.runner import run


class Address(Handler):
    """An address, found by itself or by its name."""

    kind = "ip"
    key = "ip"
    service = "metalstack.api.v2.IPService"
    identity = "ip"
    id_option = "ip"
    owned = True
    options = {
        "ip": {"type": "str", "aliases": ["id"]},
        "project": {"type": "str", "required": True},
        "namespace": {"type": "str"},
        "tags": {"type": "list", "elements": "str"},
    }
    conditions = {"required_one_of": [["ip", "name"]]}

    @classmethod
    def table(cls):
        return (
            Field("name", "name"),
            Field("description", "description"),
            Field("network", "network", update=None),
            Field("type", "type", Choice("IP_TYPE"),
                  spec={"type": "str", "choices": choices("IP_TYPE")}),
            Field("address_family", "addressFamily", Choice("IP_ADDRESS_FAMILY"), update=None,
                  fixed=IGNORE, spec={"type": "str", "choices": choices("IP_ADDRESS_FAMILY")}),
            Field("machine", "machine", update=None, fixed=IGNORE),
        )

    def scope(self):
        return {"project": self.params["project"]}

    def headers(self):
        """The namespace of the address, which the messages have no field for."""
        namespace = self.params["namespace"]
        return {"metalmesh-namespace": namespace} if namespace else {}

    def find(self):
        if self.params["ip"]:
            request = dict(self.scope(), ip=self.params["ip"])
            if self.params["namespace"] not in (None, "none"):
                request["namespace"] = self.params["namespace"]
            return (self.client.find(self.service, "Get", request) or {}).get("ip")
        query = {"name": self.params["name"], "project": self.params["project"]}
        if self.params["network"]:
            query["network"] = self.params["network"]
        answer = self.client.find(self.service, "List", dict(self.scope(), query=query)) or {}
        return self.only(answer.get("ips", []), "give the address")

    def prepare(self, actual):
        if actual is None and not self.params["network"]:
            raise Refusal("ip %s does not exist; give the network of a new one" % self.name)

    @property
    def fields(self):
        own = super().fields
        return own + (Field("ip", "ip", update=None, fixed=IGNORE),) if self.params["ip"] else own


def main():
    run(Address)


if __name__ == "__main__":
    main()
