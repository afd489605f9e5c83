# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Writes files of environment variables as systemd reads them (EnvironmentFile=). Pure."""
from __future__ import annotations

import re

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Values of these are the same without quotes.
PLAIN = re.compile(r"[A-Za-z0-9_./:,@%+=\[\]-]+")
# What a backslash takes the meaning from, between double quotes.
SPECIAL = re.compile(r'(["\\\\$`])')
# No value can have one of these: the file is read line by line, and a NUL ends a variable.
CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class EnvironmentProblem(Exception):
    """A variable that such a file has no form for."""


def to_environment(variables):
    """A dictionary as a file with a line for each variable, by name. None means no variable."""
    if not isinstance(variables, dict):
        raise EnvironmentProblem("variables are a dictionary, not %s" % type(variables).__name__)
    lines = [line_of(str(name), value) for name, value in sorted(variables.items()) if value is not None]
    return "".join(line + "\n" for line in lines)


def line_of(name, value):
    """The line of a variable. No message has a value: it may be a secret."""
    if not NAME.fullmatch(name):
        raise EnvironmentProblem("%r is no name of a variable: write letters, digits and _" % name)
    if isinstance(value, bool):
        value = "true" if value else "false"
    if not isinstance(value, (str, int, float)):
        raise EnvironmentProblem("%s: is %s; write a text or a number" % (name, type(value).__name__))
    text = str(value)
    if CONTROL.search(text):
        raise EnvironmentProblem("%s: has a line break or another control character" % name)
    if text and not PLAIN.fullmatch(text):
        text = '"%s"' % SPECIAL.sub(r"\\\1", text)
    return "%s=%s" % (name, text)
