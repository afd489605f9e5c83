# Copyright (c) 2026, the metalmesh authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Dictionaries as TOML."""
from __future__ import annotations

DOCUMENTATION = r"""
name: to_toml
short_description: Write a dictionary as TOML
version_added: 0.1.0
author: the metalmesh authors (@metalmesh)
description:
  - Writes a dictionary as a TOML file, the form of metalmesh's configuration files.
  - Keys whose value is null are left out.
options:
  _input:
    description: The dictionary.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: A configuration file
  ansible.builtin.copy:
    content: "{{ {'rack': 'rack-1', 'bgp': {'asn': 4200000001}} | metalmesh.metalmesh.to_toml }}"
    dest: /etc/metalmesh/core.toml
    mode: "0644"
"""

RETURN = r"""
_value:
  description: The file.
  type: str
"""

from ansible.errors import AnsibleFilterError

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.toml import (
    TomlProblem, to_toml)


def filtered(value):
    """The filter."""
    try:
        return to_toml(value)
    except TomlProblem as problem:
        raise AnsibleFilterError("to_toml: %s" % problem) from problem


class FilterModule:
    """The filter of this file."""

    def filters(self):
        """Filters by name."""
        return {"to_toml": filtered}
