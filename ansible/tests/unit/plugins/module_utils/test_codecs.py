# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Values of options beside fields of objects."""
from __future__ import annotations

import pytest

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.codecs import (
    ChoiceSet, Duration, Items, Moment, Roles, Tree, moment, seconds)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import ValueProblem


@pytest.mark.parametrize("text,count", [
    ("3d5h19m", 278340), ("90s", 90), ("90", 90), (600, 600), ("1w", 604800), (" 8h ", 28800)])
def test_lengths_of_time(text, count):
    assert seconds(text) == count


@pytest.mark.parametrize("text", ["", "8 hours", "h8", "-1s", "1h x"])
def test_no_lengths_of_time(text):
    with pytest.raises(ValueProblem):
        seconds(text)


@pytest.mark.parametrize("text,utc", [
    ("2027-01-31T12:00:00Z", "2027-01-31T12:00:00Z"),
    ("2027-01-31T12:00:00.123456789Z", "2027-01-31T12:00:00Z"),
    ("2027-01-31T14:00:00+02:00", "2027-01-31T12:00:00Z"),
    ("2027-01-31 12:00:00", "2027-01-31T12:00:00Z"),
    ("2027-01-31", "2027-01-31T00:00:00Z"),
])
def test_moments(text, utc):
    assert moment(text) == utc


def test_no_moment():
    with pytest.raises(ValueProblem):
        Moment().wanted("tomorrow")


@pytest.mark.parametrize("codec,wanted,observed,same", [
    (Duration(), "1h", "3600s", True),
    (Duration(), "1h", None, False),
    (Duration(), "0s", None, True),
    (ChoiceSet("IMAGE_FEATURE"), ["machine"], ["IMAGE_FEATURE_MACHINE"], True),
    (ChoiceSet("IMAGE_FEATURE"), ["firewall", "machine"],
     ["IMAGE_FEATURE_MACHINE", "IMAGE_FEATURE_FIREWALL"], True),
    (Items(ordered=False), ["b", "a"], ["a", "b"], True),
    (Items(), ["b", "a"], ["a", "b"], False),
    (Items("ip"), [], None, True),
    (Roles("PROJECT_ROLE"), {"p": "owner"}, {"p": "PROJECT_ROLE_OWNER"}, True),
    (Tree(), [{"min_size": 4, "max": 0}], [{"minSize": "4"}], True),
    (Tree(maps=("images",)), {"images": {"some_os": ">= 1"}}, {"images": {"some_os": ">= 1"}}, True),
    (Tree(enums={"format": "FORMAT"}), [{"format": "ext4"}], [{"format": "FORMAT_EXT4"}], True),
    (Tree(), [], None, True),
    (Tree(), {"a": [1]}, None, False),
])
def test_comparison(codec, wanted, observed, same):
    assert codec.same(codec.wanted(wanted), codec.observed(observed)) == same


def test_roles_are_checked_and_the_last_one_stays():
    with pytest.raises(ValueProblem, match="no role"):
        Roles("PROJECT_ROLE").wanted({"p": "king"})
    with pytest.raises(ValueProblem, match="last role"):
        Roles("PROJECT_ROLE").updated({}, {"p": "owner"})
