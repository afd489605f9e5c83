#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: pool_info
short_description: Looks up pools and their hosts
version_added: 0.1.0
description:
  - Lists pools, each with its hosts. It needs an admin role.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.info
options:
  id:
    description: Only the pool of this id.
    type: str
"""

EXAMPLES = r"""
- name: Pools
  metalmesh.metalmesh.pool_info:
  register: found
"""

RETURN = r"""
pools:
  description: The pools, each with its hosts in C(pool_hosts).
  returned: success
  type: list
  elements: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.info import run_info
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.listings import LISTINGS


def main():
    run_info(LISTINGS["pool"])


if __name__ == "__main__":
    main()
