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

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.info import run_info
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.listings import LISTINGS


def main():
    run_info(LISTINGS["machine"])


if __name__ == "__main__":
    main()
