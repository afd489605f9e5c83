#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: token_info
short_description: Looks up tokens
version_added: 0.1.0
description:
  - Lists valid tokens, without their secrets.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.info
  - metalmesh.metalmesh.info.labels
options:
  id:
    description: Only the token of this UUID.
    type: str
    aliases: [uuid]
  user:
    description: Only those of this user.
    type: str
  description:
    description: Only those with this description.
    type: str
  all_users:
    description: Whether those of all users are listed, which needs an admin role.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Tokens of the caller
  metalmesh.metalmesh.token_info:
  register: found
"""

RETURN = r"""
tokens:
  description: The tokens.
  returned: success
  type: list
  elements: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.info import run_info
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.listings import LISTINGS


def main():
    run_info(LISTINGS["token"])


if __name__ == "__main__":
    main()
