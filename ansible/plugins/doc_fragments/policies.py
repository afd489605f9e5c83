# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Policies of pools and of their hosts."""
from __future__ import annotations


class ModuleDocFragment:
    """Policies under the two names that they have."""

    POOL = r"""
options:
  policies:
    description: A project is admitted if one of them admits it. None admits nobody.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the policy.
        type: str
        required: true
      allow_all:
        description: Whether every project is admitted.
        type: bool
        default: false
      projects:
        description: UUIDs of projects.
        type: list
        elements: str
      pattern:
        description: Regular expression for the whole id or alias of a project.
        type: str
      labels:
        description: Labels that administrators gave to the project, all of them.
        type: list
        elements: dict
        suboptions:
          name:
            description: Key of the label.
            type: str
            required: true
          value:
            description: Value of the label. Default is any.
            type: str
      priority_max:
        description: Highest priority of the claims, 0 to 1000.
        type: int
        default: 0
"""

    HOST = r"""
options:
  only:
    description: They narrow the policies of the pool. None narrows nothing.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the policy.
        type: str
        required: true
      allow_all:
        description: Whether every project is admitted.
        type: bool
        default: false
      projects:
        description: UUIDs of projects.
        type: list
        elements: str
      pattern:
        description: Regular expression for the whole id or alias of a project.
        type: str
      labels:
        description: Labels that administrators gave to the project, all of them.
        type: list
        elements: dict
        suboptions:
          name:
            description: Key of the label.
            type: str
            required: true
          value:
            description: Value of the label. Default is any.
            type: str
      priority_max:
        description: Highest priority of the claims, 0 to 1000.
        type: int
        default: 0
"""
