#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: machine_info
short_description: Looks up machines
version_added: 0.1.0
description:
  - Lists machines and firewalls.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.info
  - metalmesh.metalmesh.info.labels
  - metalmesh.metalmesh.info.project
options:
  id:
    description: Only the machine of this UUID.
    type: str
    aliases: [uuid]
  name:
    description: Only allocations of this name.
    type: str
  hostname:
    description: Only allocations with this host name.
    type: str
  partition:
    description: Only machines of this partition.
    type: str
  size:
    description: Only machines of this size.
    type: str
  rack:
    description: Only machines of this rack.
    type: str
  image:
    description: Only allocations with this image.
    type: str
  allocation_type:
    description: Only machines or only firewalls.
    type: str
    choices: [machine, firewall]
  state:
    description: Only machines in this state.
    type: str
    choices: [tainted, locked, available]
  waiting:
    description: Only machines that wait for an allocation.
    type: bool
"""

EXAMPLES = r"""
- name: Machines of a project with their addresses
  metalmesh.metalmesh.machine_info:
    project: 0195a5b2-7c1e-7d8a-a1f2-9d5b6c0e4f11
  register: found
"""

RETURN = r"""
machines:
  description: The machines.
  returned: success
  type: list
  elements: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.codecs import Choice, Flag
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.enums import choices
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.info import (
    Filter, Listing, labels_filter, run_info)

LISTING = Listing("machines", "machines", "metalstack.api.v2.MachineService", (
    Filter("project", "project"),
    Filter("id", "query.uuid", spec={"type": "str", "aliases": ["uuid"]}),
    Filter("name", "query.allocation.name"),
    Filter("hostname", "query.allocation.hostname"),
    Filter("image", "query.allocation.image"),
    Filter("allocation_type", "query.allocation.allocationType", Choice("MACHINE_ALLOCATION_TYPE"),
           {"type": "str", "choices": choices("MACHINE_ALLOCATION_TYPE")}),
    Filter("partition", "query.partition"),
    Filter("size", "query.size"),
    Filter("rack", "query.rack"),
    Filter("state", "query.state", Choice("MACHINE_STATE"),
           {"type": "str", "choices": choices("MACHINE_STATE")}),
    Filter("waiting", "query.waiting", Flag(), {"type": "bool"}),
    labels_filter("query.allocation.labels"),
), all_service="metalstack.admin.v2.MachineService")


def main():
    run_info(LISTING)


if __name__ == "__main__":
    main()
