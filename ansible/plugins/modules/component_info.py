#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: component_info
short_description: Looks up components
version_added: 0.1.0
description:
  - Lists the credentials of components that work for a project, or without O(project) the components of
    the site, which are agents with their versions and the time of their last report.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.info
options:
  project:
    description: UUID of the project. Without it an admin role is needed.
    type: str
"""

EXAMPLES = r"""
- name: Agents of the site
  metalmesh.metalmesh.component_info:
  register: found
"""

RETURN = r"""
components:
  description: The components.
  returned: success
  type: list
  elements: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.info import run_info
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.listings import LISTINGS


def main():
    run_info(LISTINGS["component"])


if __name__ == "__main__":
    main()
