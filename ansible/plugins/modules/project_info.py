#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: project_info
short_description: Looks up projects
version_added: 0.1.0
description:
  - Lists projects. With an admin role those of everybody, else those of the caller.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.info
  - metalmesh.metalmesh.info.labels
options:
  id:
    description: Only the project of this UUID.
    type: str
    aliases: [uuid]
  name:
    description: Only those of this name.
    type: str
  tenant:
    description: Only those of the tenant with this login.
    type: str
"""

EXAMPLES = r"""
- name: A project by its name
  metalmesh.metalmesh.project_info:
    name: web
    tenant: acme
  register: found
"""

RETURN = r"""
projects:
  description: The projects.
  returned: success
  type: list
  elements: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.info import run_info
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.listings import LISTINGS


def main():
    run_info(LISTINGS["project"])


if __name__ == "__main__":
    main()
