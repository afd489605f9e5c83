#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: claim_info
short_description: Looks up claims
version_added: 0.1.0
description:
  - Lists claims of a project that are not over, or those of all projects with their machines.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.info
  - metalmesh.metalmesh.info.labels
  - metalmesh.metalmesh.info.project
options:
  name:
    description: Only the claim of this name.
    type: str
"""

EXAMPLES = r"""
- name: Claims of the project
  metalmesh.metalmesh.claim_info:
    project: 0195a5b2-7c1e-7d8a-a1f2-9d5b6c0e4f11
  register: found
"""

RETURN = r"""
claims:
  description: The claims. Without O(project) each has the UUID of its machine in C(machine).
  returned: success
  type: list
  elements: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.info import run_info
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.listings import LISTINGS


def main():
    run_info(LISTINGS["claim"])


if __name__ == "__main__":
    main()
