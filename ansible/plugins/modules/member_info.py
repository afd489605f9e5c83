#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: member_info
short_description: Looks up members of a tenant or a project
version_added: 0.1.0
description:
  - Lists the members of a tenant or a project.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.info
options:
  project:
    description: UUID of the project.
    type: str
  tenant:
    description: Login of the tenant.
    type: str
"""

EXAMPLES = r"""
- name: Who works in the project
  metalmesh.metalmesh.member_info:
    project: 0195a5b2-7c1e-7d8a-a1f2-9d5b6c0e4f11
  register: found
"""

RETURN = r"""
members:
  description: The members. Those that a project has from its tenant have C(inherited_membership).
  returned: success
  type: list
  elements: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.info import run_info
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.listings import LISTINGS


def main():
    run_info(LISTINGS["member"])


if __name__ == "__main__":
    main()
