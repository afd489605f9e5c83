# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Options of modules that create, change and remove objects."""
from __future__ import annotations


class ModuleDocFragment:
    """The parts of which modules take what they have."""

    # Check mode, diff mode and the target.
    DOCUMENTATION = r"""
attributes:
  check_mode:
    support: full
    description: The change is computed, and the server judges it by a dry run.
  diff_mode:
    support: full
    description: The options that change, before and after.
  platform:
    support: full
    platforms: all
    description: The module runs wherever Python does, and calls the API.
"""

    STATE = r"""
options:
  state:
    description: Whether the object is to be there.
    type: str
    choices: [present, absent]
    default: present
"""

    LABELS = r"""
options:
  labels:
    description: Labels of the object.
    type: dict
  purge_labels:
    description:
      - Whether labels that O(labels) does not name are removed. Without O(labels) all stay.
      - Labels of Kubernetes' and metal-stack's controllers (V(cluster.metal-stack.io/),
        V(machine.metal-stack.io/), V(ci.metal-stack.io/)) and those below V(metalmesh.dev/) stay in
        any case.
    type: bool
    default: true
"""

    OWNED = r"""
options:
  manage_foreign:
    description:
      - Whether O(state=absent) removes objects that Ansible has not made.
      - Objects that the collection makes, and those of metal-stack's modules, have the label
        V(ci.metal-stack.io/manager=ansible).
    type: bool
    default: false
"""

    WAIT = r"""
options:
  wait:
    description: Whether the module waits until the change has taken effect.
    type: bool
    default: false
  wait_timeout:
    description: Longest time of the wait, seconds. After it the task fails.
    type: int
    default: 1200
"""
