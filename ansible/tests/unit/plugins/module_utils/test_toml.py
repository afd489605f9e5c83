# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Dictionaries as TOML, read back where Python can."""
from __future__ import annotations

import pytest

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.toml import (
    TomlProblem, to_toml)

tomllib = pytest.importorskip("tomllib")


@pytest.mark.parametrize("value", [
    {},
    {"a": 1, "b": True, "c": "x\"y\\\n\u00fc", "d": [1, 2], "e": []},
    {"t": {"x": 1, "u": {"y": 2}}, "last": 3},
    {"only": {"nested": {"x": 1}}},
    {"empty": {}},
    {"list": [{"a": 1, "sub": {"b": 2}}, {"a": 3}], "x": 1},
    {"list": [{"inner": [{"a": 1}]}]},
    {"bmc": {"10.0.0.1": {"user": "u"}}},
    {"network": [{"range": ["10.0.0.1", "10.0.0.9"], "bmc": {"all": True}}], "relay": {"a": "b"}},
])
def test_round_trip(value):
    assert tomllib.loads(to_toml(value)) == value


def test_null_is_left_out():
    assert to_toml({"a": None, "b": {"c": None, "d": 1}}) == "[b]\nd = 1\n"


@pytest.mark.parametrize("value", [[], {"a": object()}, {"a": [{"b": 1}, 2]}])
def test_no_toml(value):
    with pytest.raises(TomlProblem):
        to_toml(value)
