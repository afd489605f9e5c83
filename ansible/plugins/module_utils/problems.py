# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""What is wrong with what a user wrote."""
from __future__ import annotations


class ValueProblem(Exception):
    """A value that nothing can be made of; the message says why, and what to write."""


class Refusal(Exception):
    """A task that cannot be carried out; the message names the rule and the remedy."""
