#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: tenant_info
short_description: Looks up tenants
version_added: 0.1.0
description:
  - Lists tenants. With an admin role those of everybody, else those of the caller.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.info
  - metalmesh.metalmesh.info.labels
options:
  login:
    description: Only the tenant of this login.
    type: str
    aliases: [id]
  name:
    description: Only those of this name.
    type: str
"""

EXAMPLES = r"""
- name: All tenants
  metalmesh.metalmesh.tenant_info:
  register: found
"""

RETURN = r"""
tenants:
  description: The tenants.
  returned: success
  type: list
  elements: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.info import run_info
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.listings import LISTINGS


def main():
    run_info(LISTINGS["tenant"])


if __name__ == "__main__":
    main()
