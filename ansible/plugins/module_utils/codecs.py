# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""How values of options compare with fields of objects, and how they are written in requests.

A codec turns what a user wrote (`wanted`) and what an object has (`observed`) into one form, in
which they are compared and shown. All of it is pure.
"""
from __future__ import annotations

import datetime
import re

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.enums import (
    choices, full, short_of)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.presentation import (
    camel, without_defaults)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import ValueProblem

DURATION_PART = re.compile(r"(\d+)([wdhms])")
SECONDS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}


class Codec:
    """Texts and booleans: the option's value is the field's value."""

    # What an object has for a field that JSON leaves out.
    absent = ""

    def wanted(self, value):
        """The user's value, in the form of comparison."""
        return value

    def observed(self, value):
        """The object's value, in the form of comparison."""
        return self.absent if value is None else value

    def same(self, wanted, observed):
        """True if nothing has to change."""
        return wanted == observed

    def merged(self, wanted, observed):
        """The value after the change."""
        return wanted

    def created(self, wanted):
        """The value in a request that creates an object."""
        return wanted

    def updated(self, wanted, observed):
        """The value in a request that updates one."""
        return self.created(wanted)


class Flag(Codec):
    """Booleans."""

    absent = False


class Number(Codec):
    """Integers; 64-bit ones are texts in JSON, and both are read."""

    absent = 0

    def observed(self, value):
        return int(value or 0)


class Pairs(Codec):
    """A map of texts."""

    def wanted(self, value):
        return {str(key): str(item) for key, item in value.items() if item is not None}

    def observed(self, value):
        return dict(value or {})


class Choice(Codec):
    """One value of an enum."""

    def __init__(self, prefix):
        self.prefix = prefix

    def observed(self, value):
        return short_of(value) if value else ""

    def created(self, wanted):
        return full(self.prefix, wanted)


class ChoiceSet(Codec):
    """Several values of an enum, in any order."""

    def __init__(self, prefix):
        self.prefix = prefix

    def wanted(self, value):
        return sorted(set(value))

    def observed(self, value):
        return sorted(short_of(item) for item in value or [])

    def created(self, wanted):
        return [full(self.prefix, item) for item in wanted]


class Items(Codec):
    """A list of texts in their order.

    `key` names the field of the message that holds each; None means that they are plain texts.
    `nothing` is the entry that the API takes for an empty list, which JSON cannot tell from an
    absent one.
    """

    def __init__(self, key=None, nothing=None, ordered=True):
        self.key = key
        self.nothing = nothing
        self.ordered = ordered

    def wanted(self, value):
        return list(value) if self.ordered else sorted(set(value))

    def observed(self, value):
        found = [item[self.key] if self.key else item for item in value or []]
        return found if self.ordered else sorted(found)

    def created(self, wanted):
        return [{self.key: item} if self.key else item for item in wanted]

    def updated(self, wanted, observed):
        if not wanted and self.nothing is not None:
            return self.created([self.nothing])
        return self.created(wanted)


class Tree(Codec):
    """Messages and lists of messages, written by users with snake_case names.

    `maps` names fields whose keys are data, `enums` the enum of a field; both by the names that
    users write.
    """

    def __init__(self, maps=(), enums=None, durations=()):
        self.maps = frozenset(maps)
        self.enums = enums or {}
        self.durations = frozenset(durations)

    def wanted(self, value):
        return self._api(value)

    def observed(self, value):
        return self._plain(value) if value else {}

    def same(self, wanted, observed):
        plain = self._plain(wanted)
        return plain == observed or not plain and not observed

    def _plain(self, value):
        return without_defaults(_numbers(value), [camel(name) for name in self.maps])

    def _api(self, value, name=""):
        if isinstance(value, dict):
            if name in self.maps:
                return {str(key): str(item) for key, item in value.items() if item is not None}
            return {camel(key): self._api(item, key) for key, item in value.items()
                    if item is not None}
        if isinstance(value, (list, tuple)):
            return [self._api(item, name) for item in value]
        if name in self.enums:
            return full(self.enums[name], value)
        if name in self.durations:
            return written_seconds(seconds(value))
        return value


def _numbers(value):
    """Numbers as numbers wherever JSON may have them as text, so that both forms are equal."""
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    if isinstance(value, str) and value.isdigit() and str(int(value)) == value:
        return int(value)
    return value


class Roles(Codec):
    """A map from a subject to a role."""

    def __init__(self, prefix):
        self.prefix = prefix

    def wanted(self, value):
        for subject, role in value.items():
            if role not in choices(self.prefix):
                raise ValueProblem("%s is no role for %s; write one of %s" % (
                    role, subject, ", ".join(choices(self.prefix))))
        return dict(value)

    def observed(self, value):
        return {subject: short_of(role) for subject, role in (value or {}).items()}

    def created(self, wanted):
        return {subject: full(self.prefix, role) for subject, role in wanted.items()}

    def updated(self, wanted, observed):
        if not wanted:
            raise ValueProblem("an update cannot remove the last role of a kind; revoke the token and "
                               "create another")
        return self.created(wanted)


class Duration(Codec):
    """A length of time: `3d5h19m`, `90s`, or seconds."""

    def wanted(self, value):
        return seconds(value)

    def observed(self, value):
        return seconds(value or 0)

    def created(self, wanted):
        return written_seconds(wanted)


class Moment(Codec):
    """A point in time, RFC 3339, to the second."""

    def wanted(self, value):
        return moment(value)

    def observed(self, value):
        return moment(value) if value else ""


def seconds(text):
    """Seconds of a length of time: `3d5h19m`, `90s`, `90`."""
    plain = str(text).strip()
    if plain.isdigit():
        return int(plain)
    parts = DURATION_PART.findall(plain)
    if not parts or "".join(count + unit for count, unit in parts) != plain:
        raise ValueProblem("%r is no length of time; write it like 3d5h19m" % text)
    return sum(int(count) * SECONDS[unit] for count, unit in parts)


def written_seconds(count):
    """A length of time as JSON of the API has it."""
    return "%ds" % count


def moment(text):
    """A point in time in UTC, to the second."""
    plain = re.sub(r"\.\d+", "", str(text).strip().replace(" ", "T"))
    if plain.endswith(("Z", "z")):
        plain = plain[:-1] + "+00:00"
    try:
        parsed = datetime.datetime.fromisoformat(plain)
    except ValueError as error:
        raise ValueProblem("%r is no time; write it like 2027-01-31T12:00:00Z" % text) from error
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=datetime.timezone.utc)
    return parsed.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
