#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: image_info
short_description: Looks up images
version_added: 0.1.0
description:
  - Lists images.
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
  os:
    description: Only images of this operating system.
    type: str
  classification:
    description: Only images of this classification.
    type: str
    choices: [preview, supported, deprecated]
  feature:
    description: Only images for this.
    type: str
    choices: [machine, firewall]
  latest:
    description: Whether only the newest image of O(os) is returned.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: The newest Debian
  metalmesh.metalmesh.image_info:
    os: debian-12
    latest: true
  register: found
"""

RETURN = r"""
images:
  description: The images.
  returned: success
  type: list
  elements: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.info import run_info
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.listings import LISTINGS


def main():
    run_info(LISTINGS["image"])


if __name__ == "__main__":
    main()
