#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: network
short_description: Networks
version_added: 0.1.0
description:
  - Creates, changes and deletes networks. A project has child networks; all other types belong to the
    site and need an admin role.
  - A network is found by its id, or by its name in its project; without a project among all networks
    without one.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.resource
  - metalmesh.metalmesh.resource.state
  - metalmesh.metalmesh.resource.labels
  - metalmesh.metalmesh.resource.owned
options:
  id:
    description: Id. Only an administrator chooses that of a new network.
    type: str
  name:
    description: Name.
    type: str
  description:
    description: Free text.
    type: str
  project:
    description: UUID of the project.
    type: str
  partition:
    description: Partition.
    type: str
  shared:
    description:
      - Whether machines of other projects may be in the network. It is O(type=child-shared), which needs
        an admin role.
    type: bool
    default: false
  type:
    description:
      - Type. Default for a network of a project is V(child). With it the call goes to the administration.
    type: str
    choices: [external, underlay, super, super-namespaced, child, child-shared]
  parent_network:
    description: Network whose prefixes a new child network is taken from.
    type: str
  length:
    description: Length of the prefixes of a new child network.
    type: dict
    suboptions: &lengths
      ipv4:
        description: Length of IPv4 prefixes, 1 to 32.
        type: int
      ipv6:
        description: Length of IPv6 prefixes, 1 to 128.
        type: int
  address_family:
    description: Families of a new child network.
    type: str
    choices: [ipv4, ipv6, dual-stack]
  prefixes:
    description: Prefixes of a network of the site, in any order.
    type: list
    elements: str
  destination_prefixes:
    description: Prefixes that are reached through the network. An empty list removes all.
    type: list
    elements: str
  additional_announcable_cidrs:
    description: Further prefixes that machines may announce. An empty list removes all, with O(force).
    type: list
    elements: str
  default_child_prefix_length:
    description: Length of child networks that do not ask for one.
    type: dict
    suboptions: *lengths
  min_child_prefix_length:
    description: Least length of child networks.
    type: dict
    suboptions: *lengths
  nat_type:
    description: Whether firewalls translate addresses towards the network.
    type: str
    choices: [none, ipv4-masq]
  vrf:
    description: VRF of a new network of the site.
    type: int
  force:
    description: Whether changes are made that may hurt machines which use the network.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Prefixes for the networks of all projects
  metalmesh.metalmesh.network:
    id: tenant-super-fra-1
    type: super
    partition: fra-1
    prefixes: [10.0.0.0/16]
    default_child_prefix_length: {ipv4: 22}

- name: A network of a project
  metalmesh.metalmesh.network:
    name: web
    project: "{{ web.id }}"
    partition: fra-1
"""

RETURN = r"""
id:
  description: Id of the network.
  returned: when there is one
  type: str
network:
  description: The network. In check mode as it would be.
  returned: success
  type: dict
prefixes:
  description: Prefixes of the network.
  returned: when there is one
  type: list
  elements: str
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.codecs import (
    Choice, Items, Number, Tree)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.enums import choices
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.handler import Handler
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.plan import IGNORE, Field
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import Refusal
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.runner import run

OWN = "metalstack.api.v2.NetworkService"
ALL = "metalstack.admin.v2.NetworkService"
# Prefix by which the API empties a list, which JSON cannot tell from an absent one.
NOTHING = "0.0.0.0/32"
# Options that only the administration takes; the service for projects would not look at them.
OF_SITE = ("type", "prefixes", "destination_prefixes", "additional_announcable_cidrs", "nat_type",
           "vrf", "default_child_prefix_length", "min_child_prefix_length")
LENGTHS = {"type": "dict", "options": {"ipv4": {"type": "int"}, "ipv6": {"type": "int"}}}
PREFIXES = {"type": "list", "elements": "str"}


class Network(Handler):
    """A network of a project or of the site."""

    kind = "network"
    key = "network"
    owned = True
    options = {
        "id": {"type": "str"},
        "shared": {"type": "bool", "default": False},
        "force": {"type": "bool", "default": False},
    }
    conditions = {"required_one_of": [["id", "name"]]}

    @classmethod
    def table(cls):
        of_site = Items(ordered=False, nothing=NOTHING)
        return (
            Field("name", "name"),
            Field("description", "description"),
            Field("project", "project", update=None),
            Field("partition", "partition", update=None),
            Field("type", "type", Choice("NETWORK_TYPE"), update=None,
                  spec={"type": "str", "choices": choices("NETWORK_TYPE")}),
            Field("parent_network", "parentNetwork", update=None),
            Field("length", "length", Tree(), update=None, fixed=IGNORE, spec=LENGTHS),
            Field("address_family", "addressFamily", Choice("NETWORK_ADDRESS_FAMILY"), update=None,
                  fixed=IGNORE,
                  spec={"type": "str", "choices": choices("NETWORK_ADDRESS_FAMILY")}),
            Field("prefixes", "prefixes", Items(ordered=False), keeps_empty=True, spec=PREFIXES),
            Field("destination_prefixes", "destinationPrefixes", of_site, spec=PREFIXES),
            Field("additional_announcable_cidrs", "additionalAnnouncableCidrs", of_site,
                  spec=PREFIXES),
            Field("default_child_prefix_length", "defaultChildPrefixLength", Tree(), spec=LENGTHS),
            Field("min_child_prefix_length", "minChildPrefixLength", Tree(), spec=LENGTHS),
            Field("nat_type", "natType", Choice("NAT_TYPE"),
                  spec={"type": "str", "choices": choices("NAT_TYPE")}),
            Field("vrf", "vrf", Number(), update=None, spec={"type": "int"}),
        )

    def __init__(self, client, params):
        super().__init__(client, params)
        if params["shared"]:
            if params["type"] not in (None, "child", "child-shared"):
                raise Refusal("shared: a network of type %s has no owner who shares it; leave shared "
                              "or type out" % params["type"])
            params["type"] = "child-shared"

    @property
    def service(self):
        """The administration for networks of the site, and for what only it can set."""
        of_site = any(self.params[option] is not None for option in OF_SITE)
        of_project = self.params["project"] and not of_site and not self.params["force"]
        return OWN if of_project else ALL

    def scope(self):
        return {"project": self.params["project"]} if self.service == OWN else {}

    def find(self):
        if self.params["id"]:
            answer = self.client.find(self.service, "Get", dict(self.scope(), id=self.params["id"]))
            return (answer or {}).get("network")
        query = {"name": self.params["name"]}
        if self.params["project"]:
            query["project"] = self.params["project"]
        answer = self.client.find(self.service, "List", dict(self.scope(), query=query)) or {}
        project = self.params["project"] or ""
        return self.only([one for one in answer.get("networks", [])
                          if one.get("project", "") == project])

    def prepare(self, actual):
        if actual is None and not self.params["project"] and not self.params["type"]:
            raise Refusal("network %s does not exist; give the project or the type of a new one"
                          % self.name)
        if actual is None and self.service == OWN and self.params["id"]:
            raise Refusal("network %s does not exist in the project, and control makes the ids of its "
                          "networks; give a name instead, or type: child with an admin role"
                          % self.params["id"])

    @property
    def fields(self):
        own = super().fields
        identity = Field("id", "id", update=None, fixed=IGNORE)
        return own + (identity,) if self.params["id"] and self.service == ALL else own

    def update(self, plan, actual):
        if self.service == ALL and self.params["force"]:
            force = Field("force", "force")
            plan.changed.append(force)
            plan.wanted["force"] = True
        return super().update(plan, actual)

    def extra(self, actual):
        return {"prefixes": actual.get("prefixes", [])} if actual else {}


def main():
    run(Network)


if __name__ == "__main__":
    main()
