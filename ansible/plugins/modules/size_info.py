#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: size_info
short_description: Looks up sizes of machines
version_added: 0.1.0
description:
  - Lists sizes of machines.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.info
  - metalmesh.metalmesh.info.labels
options:
  id:
    description: Only the one of this id.
    type: str
  name:
    description: Only those of this name.
    type: str
"""

EXAMPLES = r"""
- name: Sizes
  metalmesh.metalmesh.size_info:
  register: found
"""

RETURN = r"""
sizes:
  description: The sizes.
  returned: success
  type: list
  elements: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.info import run_info
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.listings import LISTINGS


def main():
    run_info(LISTINGS["size"])


if __name__ == "__main__":
    main()
