#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: switch_info
short_description: Looks up switches
version_added: 0.1.0
description:
  - Lists switches with their ports, BGP sessions and connected machines. It needs an admin role.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.info
options:
  id:
    description: Only the switch of this id.
    type: str
  partition:
    description: Only switches of this partition.
    type: str
  rack:
    description: Only switches of this rack.
    type: str
"""

EXAMPLES = r"""
- name: Switches of a partition
  metalmesh.metalmesh.switch_info:
    partition: fra-1
  register: found
"""

RETURN = r"""
switches:
  description: The switches.
  returned: success
  type: list
  elements: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.info import run_info
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.listings import LISTINGS


def main():
    run_info(LISTINGS["switch"])


if __name__ == "__main__":
    main()
