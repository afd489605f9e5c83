# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""What modules that only look have in common."""
from __future__ import annotations


class ModuleDocFragment:
    """Attributes, and filters that several modules have."""

    DOCUMENTATION = r"""
attributes:
  check_mode:
    support: full
    description: The module changes nothing.
  diff_mode:
    support: N/A
    description: The module changes nothing.
  platform:
    support: full
    platforms: all
    description: The module runs wherever Python does, and calls the API.
"""

    LABELS = r"""
options:
  labels:
    description: Only objects with all of these labels.
    type: dict
"""

    PROJECT = r"""
options:
  project:
    description:
      - UUID of the project whose objects are listed.
      - Without it those of all projects are listed, which needs an admin role.
    type: str
"""
