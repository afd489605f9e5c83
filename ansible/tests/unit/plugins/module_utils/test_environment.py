# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Files of environment variables, as systemd.exec(5) has them."""
from __future__ import annotations

import pytest

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.environment import (
    EnvironmentProblem, to_environment)


@pytest.mark.parametrize("value,line", [
    ("c-1.example:4443,[2001:db8::1]:4443", "A=c-1.example:4443,[2001:db8::1]:4443"),
    ("http://127.0.0.1:4318/v1/traces", "A=http://127.0.0.1:4318/v1/traces"),
    ("", "A="), (7, "A=7"), (True, "A=true"),
    ("two words", 'A="two words"'), ("# no comment", 'A="# no comment"'), (" ", 'A=" "'),
    ('a "b" $c `d` \\e', 'A="a \\"b\\" \\$c \\`d\\` \\\\e"'),
    ("it's; rm -rf /", 'A="it\'s; rm -rf /"')])
def test_values(value, line):
    assert to_environment({"A": value}) == line + "\n"


def test_order_and_what_is_left_out():
    assert to_environment({"B": 1, "A": 2, "C": None}) == "A=2\nB=1\n"
    assert to_environment({}) == ""


@pytest.mark.parametrize("variables", [
    {"A": "x\nLD_PRELOAD=/tmp/x.so"}, {"A": "x\r"}, {"A": "\0"}, {"A": ["x"]}, {"A": {}},
    {"A B": "x"}, {"A=B": "x"}, {"": "x"}, {"1A": "x"}, {"A\n": "x"}, ["A"]])
def test_what_has_no_form(variables):
    with pytest.raises(EnvironmentProblem):
        to_environment(variables)


def test_no_message_has_a_value():
    with pytest.raises(EnvironmentProblem) as problem:
        to_environment({"A": "secret\n"})
    assert "secret" not in str(problem.value)
