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

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.info import run_info
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.listings import LISTINGS


def main():
    run_info(LISTINGS["network"])


if __name__ == "__main__":
    main()
