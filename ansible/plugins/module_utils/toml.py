# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Writes TOML, the language of metalmesh's configuration files. Pure."""
from __future__ import annotations

import json
import re

BARE_KEY = re.compile(r"^[A-Za-z0-9_-]+$")


class TomlProblem(Exception):
    """A value that TOML has no form for."""


def to_toml(value):
    """A dictionary as a TOML file. Keys without a value (None) are left out."""
    if not isinstance(value, dict):
        raise TomlProblem("a TOML file is a dictionary, not %s" % type(value).__name__)
    lines = []
    _table(lines, (), value)
    return "\n".join(lines).strip("\n") + "\n"


def _table(lines, path, table):
    """Plain values come before tables: what follows the head of a table belongs to it."""
    given = [(str(key), value) for key, value in table.items() if value is not None]
    plain = [(key, value) for key, value in given if not _is_section(value)]
    if path and (plain or not given):
        lines.extend(("", "[%s]" % _dotted(path)))
    lines.extend("%s = %s" % (_key(key), _value(path + (key,), value)) for key, value in plain)
    for key, value in given:
        if isinstance(value, dict):
            _table(lines, path + (key,), value)
        elif _is_section(value):
            for item in value:
                lines.extend(("", "[[%s]]" % _dotted(path + (key,))))
                _items(lines, path + (key,), item)


def _items(lines, path, table):
    """The content of an entry of an array of tables."""
    body = []
    _table(body, path, table)
    head = "[%s]" % _dotted(path)
    lines.extend(line for line in _without_head(body, head))


def _without_head(body, head):
    return body[2:] if body[:2] == ["", head] else body


def _is_section(value):
    tables = isinstance(value, list) and value and all(isinstance(one, dict) for one in value)
    return isinstance(value, dict) or bool(tables)


def _dotted(path):
    return ".".join(_key(key) for key in path)


def _key(key):
    return key if BARE_KEY.match(key) else json.dumps(key)


def _value(path, value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for the character that JSON leaves alone.
        return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (list, tuple)):
        return "[%s]" % ", ".join(_value(path, item) for item in value)
    raise TomlProblem("%s: TOML has no form for %s" % (".".join(path), type(value).__name__))
