#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: filesystem_layout_info
short_description: Looks up filesystem layouts
version_added: 0.1.0
description:
  - Lists filesystem layouts.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.info
options:
  id:
    description: Only the one of this id.
    type: str
"""

EXAMPLES = r"""
- name: Layouts
  metalmesh.metalmesh.filesystem_layout_info:
  register: found
"""

RETURN = r"""
filesystem_layouts:
  description: The layouts.
  returned: success
  type: list
  elements: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.info import run_info
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.listings import LISTINGS


def main():
    run_info(LISTINGS["filesystem_layout"])


if __name__ == "__main__":
    main()
