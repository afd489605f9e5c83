# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""What has to be done so that an object is as a task wants it. Pure: no calls, no modules."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.codecs import Codec
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.labels import (
    OWNER, OWNER_LABEL, Labels, PlainLabels, is_owned, of_options)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.presentation import (
    get_path, set_path)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import (
    Refusal, ValueProblem)

NOTHING, CREATE, UPDATE, DELETE = "nothing", "create", "update", "delete"
# What a difference means in a field that cannot be changed.
REFUSE, WARN, IGNORE = "refuse", "warn", "ignore"
TEXT = Codec()


@dataclass(frozen=True)
class Field:
    """A field of an object, and the option that sets it.

    `read` is its place in the object, `create` and `update` its places in the requests; None
    means that the request does not have it. An object's field that no update has is fixed.
    """

    option: str
    read: str
    codec: Codec = TEXT
    create: Optional[str] = ""
    update: Optional[str] = ""
    fixed: str = REFUSE
    # True if an update with an empty value leaves the field as it is.
    keeps_empty: bool = False
    spec: Dict[str, Any] = field(default_factory=lambda: {"type": "str"})

    @property
    def create_path(self):
        """Where a request that creates an object has it."""
        return self.read if self.create == "" else self.create

    @property
    def update_path(self):
        """Where a request that updates one has it."""
        return self.read if self.update == "" else self.update


@dataclass
class Plan:
    """The step that a task takes, and the object's options before and after it."""

    action: str
    before: Dict[str, Any] = field(default_factory=dict)
    after: Dict[str, Any] = field(default_factory=dict)
    changed: List[Field] = field(default_factory=list)
    wanted: Dict[str, Any] = field(default_factory=dict)
    warnings: List[str] = field(default_factory=list)

    @property
    def changes(self):
        """True if the step changes anything."""
        return self.action != NOTHING

    def diff(self):
        """The difference, as Ansible shows it: only what the task says something about."""
        if self.action == DELETE:
            return {"before": self.before, "after": {}}
        if self.action == CREATE:
            return {"before": {}, "after": self.after}
        return {"before": self.before, "after": self.after}


def labels_field(params, read="meta.labels", create="labels", update="labels", plain=False):
    """The labels of an object whose module has the options of labels."""
    kind = PlainLabels if plain else Labels
    codec = kind(params.get("purge_labels") is not False)
    return Field("labels", read, codec, create=create, update=update, spec={"type": "dict"})


def wanted_values(fields, params):
    """The values that a task asks for, by option; what it leaves out is not among them."""
    values = {}
    for one in fields:
        try:
            raw = of_options(params) if isinstance(one.codec, Labels) else params.get(one.option)
            if raw is not None:
                values[one.option] = one.codec.wanted(raw)
        except ValueProblem as problem:
            raise Refusal("%s: %s" % (one.option, problem)) from problem
    return values


def observed_values(fields, actual):
    """The values that an object has, by option."""
    return {one.option: one.codec.observed(get_path(actual, one.read)) for one in fields}


def to_present(kind, name, fields, params, actual):
    """The plan that brings an object to what a task wants. `actual` is None if there is none."""
    wanted = wanted_values(fields, params)
    if actual is None:
        return Plan(CREATE, after=wanted, changed=list(fields), wanted=wanted)
    observed = observed_values(fields, actual)
    shown = [one.option for one in fields if one.option in wanted and one.fixed != IGNORE]
    before = {option: observed[option] for option in shown}
    plan = Plan(NOTHING, before=before, after=dict(before), wanted=wanted)
    for one in fields:
        if one.option not in wanted:
            continue
        want, have = wanted[one.option], observed[one.option]
        if one.codec.same(want, have):
            continue
        if one.update_path is None:
            _fixed(plan, kind, name, one, want, have)
            continue
        if one.keeps_empty and not want:
            raise Refusal("%s: the API cannot empty it; leave it out, or give what it is to be"
                          % one.option)
        plan.action = UPDATE
        plan.changed.append(one)
        plan.after[one.option] = one.codec.merged(want, have)
    return plan


def _fixed(plan, kind, name, one, want, have):
    if one.fixed == IGNORE:
        return
    text = "%s %s has %s %s, not %s, and keeps it as long as it exists" % (
        kind, name, one.option, _shown(have), _shown(want))
    if one.fixed == REFUSE:
        raise Refusal("%s; remove it and create it again, or correct the task" % text)
    plan.warnings.append(text)


def _shown(value):
    return repr(value) if value not in ("", [], {}, None) else "unset"


def to_absent(kind, name, fields, actual, owned, force):
    """The plan that removes an object. `owned` has its labels; None means that nobody owns it."""
    if actual is None:
        return Plan(NOTHING)
    if owned is not None and not is_owned(owned) and not force:
        raise Refusal("%s %s was not made by Ansible: it has no label %s=%s; set the label, or give "
                      "manage_foreign" % (kind, name, OWNER_LABEL, OWNER))
    return Plan(DELETE, before=observed_values(fields, actual))


def create_request(fields, wanted, owned=False):
    """The fields of a request that creates an object."""
    request = {}
    for one in fields:
        values = wanted.get(one.option)
        is_labels = isinstance(one.codec, Labels)
        if is_labels and owned:
            values = dict(values or {}, **{OWNER_LABEL: OWNER})
        if values is None or one.create_path is None or is_labels and not values:
            continue
        set_path(request, one.create_path, one.codec.created(values))
    return request


def update_request(plan, actual):
    """The fields of a request that updates an object."""
    request = {}
    for one in plan.changed:
        have = one.codec.observed(get_path(actual, one.read))
        value = one.codec.updated(plan.wanted[one.option], have)
        set_path(request, one.update_path, value)
    return request
