#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: firewall_rules_info
short_description: Looks up firewall rules and firewalls
version_added: 0.1.0
description:
  - Lists sets of firewall rules, each with its content and what its firewalls report about it.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.info
  - metalmesh.metalmesh.info.project
options:
  firewall:
    description: Only sets that are attached to the firewall of this UUID.
    type: str
  network:
    description: Only sets that are attached to this network.
    type: str
"""

EXAMPLES = r"""
- name: Rules of the project
  metalmesh.metalmesh.firewall_rules_info:
    project: 0195a5b2-7c1e-7d8a-a1f2-9d5b6c0e4f11
  register: found
"""

RETURN = r"""
firewall_rules:
  description: The sets of rules, each with its C(firewalls).
  returned: success
  type: list
  elements: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.info import run_info
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.listings import LISTINGS


def main():
    run_info(LISTINGS["firewall_rules"])


if __name__ == "__main__":
    main()
