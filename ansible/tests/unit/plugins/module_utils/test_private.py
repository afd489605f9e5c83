# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Directories of the caller alone."""
from __future__ import annotations

import os

import pytest

from ansible_collections.metalmesh.metalmesh.plugins.module_utils import private


@pytest.fixture(name="folder")
def _folder(tmp_path):
    # Directories above it, of which pytest makes one for all users, are not what is looked at.
    made = tmp_path / "cache"
    made.mkdir(mode=0o700)
    return made


def test_one_of_the_caller_is_private(folder):
    assert private.problem_of(str(folder)) is None
    assert private.problem_of(str(folder / "not" / "there")) is None


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701, 0o1777])
def test_one_that_others_can_enter_is_not(folder, mode):
    folder.chmod(mode)
    assert "is open to other users" in private.problem_of(str(folder))


@pytest.mark.parametrize("mode,problem", [(0o777, True), (0o720, True), (0o1777, False), (0o755, False)])
def test_what_is_above_it_counts(folder, mode, problem):
    below = folder / "below"
    below.mkdir(mode=0o700)
    folder.chmod(mode)
    assert bool(private.problem_of(str(below))) == problem
    assert bool(private.problem_of(str(folder / "absent"))) == problem


def test_a_file_is_none(folder):
    (folder / "file").write_text("")
    assert "is no directory" in private.problem_of(str(folder / "file"))


def test_one_of_another_user_is_not(folder, monkeypatch):
    monkeypatch.setattr(private.os, "geteuid", lambda: os.getuid() + 1)
    assert "another user" in private.problem_of(str(folder))


def test_a_link_of_another_user_is_not(folder, monkeypatch, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert private.problem_of(str(link)) is None
    real = os.lstat

    def of_another(path, **options):
        found = real(path, **options)
        return os.stat_result(found[:4] + (4711,) + found[5:]) if str(path) == str(link) else found

    monkeypatch.setattr(private.os, "lstat", of_another)
    assert "is a link of another user" in private.problem_of(str(link))
