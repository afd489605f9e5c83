# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Directories that nobody but the caller reads or writes."""
from __future__ import annotations

import os
import stat


def problem_of(path):
    """The reason why a directory is not private to the caller; None if it is, or does not exist.

    The directories above it count, too: whoever may rename it puts another one in its place.
    """
    path = os.path.abspath(os.path.expanduser(path))
    if not os.path.lexists(path):
        return _problem_above(path)
    return _problem_of_link(path) or _problem(os.path.realpath(path))


def _problem_of_link(path):
    if os.path.islink(path) and os.lstat(path).st_uid not in (0, os.geteuid()):
        return "%s is a link of another user" % path
    return None


def _problem(path):
    found = os.stat(path)
    if not stat.S_ISDIR(found.st_mode):
        return "%s is no directory" % path
    if found.st_uid != os.geteuid():
        return "%s belongs to another user" % path
    if found.st_mode & 0o077:
        return "%s is open to other users (mode %04o); write chmod 700 %s" % (
            path, stat.S_IMODE(found.st_mode), path)
    return _problem_above(path)


def _problem_above(path):
    """Directories above belong to the caller or to root. Others may write there only with the sticky bit,
    which keeps them from what is not theirs."""
    above = os.path.dirname(path)
    while True:
        if os.path.lexists(above):
            found = os.stat(above)
            is_open = found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX
            if found.st_uid not in (0, os.geteuid()) or is_open:
                return "other users may put another directory in its place, in %s" % above
        if above == os.path.dirname(above):
            return None
        above = os.path.dirname(above)
