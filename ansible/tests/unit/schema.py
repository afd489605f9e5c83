# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""The protocol files of the API, read as far as names of methods and fields go."""
from __future__ import annotations

import pathlib
import re

COMMENT = re.compile(r"//[^\n]*")
PACKAGE = re.compile(r"^package ([\w.]+);", re.MULTILINE)
BLOCK = re.compile(r"^(message|service) (\w+) \{", re.MULTILINE)
FIELD = re.compile(r"(map<[^>]*>|[\w.]+) (\w+) = \d+\s*(?:\[json_name = \"(\w+)\"\])?")
METHOD = re.compile(r"rpc (\w+)\((\w+)\)\s*returns \((?:stream )?([\w.]+)\)")


def camel(name):
    """The name of a field in JSON."""
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def block_at(text, start):
    """The content of the braces that open before a place."""
    depth, end = 1, start
    while depth:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    return text[start:end - 1]


class Schema:
    """Messages with their fields, and methods with their messages."""

    def __init__(self, folder):
        self.messages = {}
        self.methods = {}
        for path in pathlib.Path(folder).glob("**/*.proto"):
            self._read(COMMENT.sub("", path.read_text(encoding="utf-8")))

    def _read(self, text):
        package = PACKAGE.search(text).group(1)
        for block in BLOCK.finditer(text):
            name = "%s.%s" % (package, block.group(2))
            content = block_at(text, block.end())
            if block.group(1) == "service":
                for method, request, answer in METHOD.findall(content):
                    self.methods["%s/%s" % (name, method)] = (
                        "%s.%s" % (package, request), "%s.%s" % (package, answer))
            else:
                self.messages[name] = {json_name or camel(field): kind
                                       for kind, field, json_name in FIELD.findall(content)}

    def message(self, holder, kind):
        """The full name of a message that another one has a field of; None for other kinds."""
        package = holder.rsplit(".", 1)[0]
        for name in ("%s.%s" % (package, kind), kind, "metalstack.%s" % kind,
                     "metalstack.api.v2.%s" % kind):
            if name in self.messages:
                return name
        return None

    def lacks(self, message, path):
        """The first step of a dotted path that a message does not have; None if it has all."""
        for step in path.split("."):
            if message is None:
                return None
            kind = self.messages[message].get(step)
            if kind is None:
                return "%s of %s" % (step, message)
            message = self.message(message, kind)
        return None
