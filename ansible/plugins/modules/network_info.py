#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: network_info
short_description: Looks up networks
version_added: 0.1.0
description:
  - Lists networks.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.info
  - metalmesh.metalmesh.info.labels
  - metalmesh.metalmesh.info.project
options:
  id:
    description: Only the one of this id.
    type: str
  name:
    description: Only those of this name.
    type: str
  partition:
    description: Only networks of this partition.
    type: str
  type:
    description: Only networks of this type.
    type: str
    choices: [external, underlay, super, super-namespaced, child, child-shared]
  parent_network:
    description: Only networks of this parent.
    type: str
  base:
    description: Whether the networks that O(project) may use are listed instead of its own.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Networks that the project may put machines into
  metalmesh.metalmesh.network_info:
    project: 0195a5b2-7c1e-7d8a-a1f2-9d5b6c0e4f11
    base: true
  register: found
"""

RETURN = r"""
networks:
  description: The networks.
  returned: success
  type: list
  elements: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.codecs import Choice
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.enums import choices
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.info import (
    Filter, Listing, labels_filter, request_of, run_info)

OWN = "metalstack.api.v2.NetworkService"
ALL = "metalstack.admin.v2.NetworkService"


def networks(client, params):
    """The networks of a project, those that it may use, or all."""
    service = OWN if params["project"] else ALL
    method = "ListBaseNetworks" if params["base"] else "List"
    return client.call(service, method, request_of(LISTING, params)).get("networks", [])


LISTING = Listing("networks", "networks", OWN, (
    Filter("project", "project"),
    Filter("id", "query.id"),
    Filter("name", "query.name"),
    Filter("partition", "query.partition"),
    Filter("type", "query.type", Choice("NETWORK_TYPE"),
           {"type": "str", "choices": choices("NETWORK_TYPE")}),
    Filter("parent_network", "query.parentNetwork"),
    labels_filter(),
), fetch=networks, options={"base": {"type": "bool", "default": False}},
    conditions={"required_if": [["base", True, ["project"]]]})


def main():
    run_info(LISTING)


if __name__ == "__main__":
    main()
