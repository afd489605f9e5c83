# Copyright (c) 2026, the metalmesh authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Dictionaries as files of environment variables."""
from __future__ import annotations

DOCUMENTATION = r"""
name: to_environment
short_description: Write a dictionary as a file of environment variables
version_added: 0.1.0
author: the metalmesh authors (@metalmesh)
description:
  - Writes a dictionary as a file that units of systemd read by C(EnvironmentFile), with values in quotes
    where they need them.
  - Variables whose value is null are left out. A line break in a value is an error, as it would begin
    another variable.
options:
  _input:
    description: The dictionary.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: The environment of a unit
  ansible.builtin.copy:
    content: "{{ {'METALMESH_LOG': 'info'} | metalmesh.metalmesh.to_environment }}"
    dest: /etc/default/metalmesh-core
    mode: "0600"
"""

RETURN = r"""
_value:
  description: The file.
  type: str
"""

from ansible.errors import AnsibleFilterError

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.environment import (
    EnvironmentProblem, to_environment)


def filtered(value):
    """The filter."""
    try:
        return to_environment(value)
    except EnvironmentProblem as problem:
        raise AnsibleFilterError("to_environment: %s" % problem) from problem


class FilterModule:
    """The filter of this file."""

    def filters(self):
        """Filters by name."""
        return {"to_environment": filtered}
