#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: ip_info
short_description: Looks up addresses
version_added: 0.1.0
description:
  - Lists addresses of a project or of all projects.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.info
  - metalmesh.metalmesh.info.labels
  - metalmesh.metalmesh.info.project
options:
  ip:
    description: Only this address.
    type: str
  name:
    description: Only those of this name.
    type: str
  network:
    description: Only those of this network.
    type: str
  machine:
    description: Only those of the machine of this UUID.
    type: str
  type:
    description: Only those of this type.
    type: str
    choices: [ephemeral, static]
"""

EXAMPLES = r"""
- name: Addresses that stay
  metalmesh.metalmesh.ip_info:
    project: 0195a5b2-7c1e-7d8a-a1f2-9d5b6c0e4f11
    type: static
  register: found
"""

RETURN = r"""
ips:
  description: The addresses.
  returned: success
  type: list
  elements: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.info import run_info
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.listings import LISTINGS


def main():
    run_info(LISTINGS["ip"])


if __name__ == "__main__":
    main()
