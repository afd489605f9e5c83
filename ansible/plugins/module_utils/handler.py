# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""A kind of object: its fields, and the calls that find, create, change and remove it.

A module is a subclass with the table of its fields and the calls that differ from the usual ones.
"""
from __future__ import annotations

import time

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.labels import LABEL_OPTIONS
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.plan import (
    create_request, labels_field, to_absent, to_present, update_request)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.presentation import get_path
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import Refusal

STATE_OPTION = {"type": "str", "choices": ["present", "absent"], "default": "present"}
WAIT_OPTIONS = {
    "wait": {"type": "bool", "default": False},
    "wait_timeout": {"type": "int", "default": 1200},
}
# Pause between two looks at an object that is waited for, seconds.
POLL = 2


class Handler:
    """A kind of object that can be created, changed and removed."""

    # What messages and the result call it.
    kind = ""
    # Key of the object in answers.
    key = ""
    service = ""
    # Place of the id in the object, and the name of the id in requests.
    identity = "id"
    id_option = "id"
    # True if objects carry the mark of ownership.
    owned = False
    labelled = True
    waits = False
    # Where requests and objects have labels.
    labels_read = "meta.labels"
    labels_create = "labels"
    plain_labels = False
    # Who checks that an object is as it was read when it is changed: the client or the server.
    locking = "CLIENT"
    # Options beside those of the fields, and conditions of AnsibleModule.
    options = {}
    conditions = {}

    def __init__(self, client, params):
        self.client = client
        self.params = params

    @classmethod
    def table(cls):
        """The fields, without labels."""
        raise NotImplementedError

    @classmethod
    def argument_spec(cls):
        """The options of the module, without those of the connection."""
        spec = {"state": STATE_OPTION}
        for one in cls.table():
            spec[one.option] = one.spec
        if cls.labelled:
            spec.update(LABEL_OPTIONS)
        if cls.owned:
            spec["manage_foreign"] = {"type": "bool", "default": False}
        if cls.waits:
            spec.update(WAIT_OPTIONS)
        spec.update(cls.options)
        return spec

    @property
    def fields(self):
        """The fields, with labels."""
        own = tuple(self.table())
        if not self.labelled:
            return own
        return own + (labels_field(self.params, read=self.labels_read, create=self.labels_create,
                                   plain=self.plain_labels),)

    @property
    def name(self):
        """What messages call the object of the task."""
        return str(self.params.get("name") or self.params.get(self.id_option) or "")

    # What differs between kinds.

    def find(self):
        """The object, or None."""
        raise NotImplementedError

    def scope(self):
        """The fields of every request, such as the project."""
        return {}

    def headers(self):
        """Headers of requests that change or remove the object."""
        return {}

    def prepare(self, actual):
        """Checks the task against the object, and looks up what its options name."""

    def extra(self, actual):
        """Further keys of the result."""
        return {}

    def is_settled(self, actual):
        """True if nothing has to be waited for; raises a Refusal if it never will be."""
        return True

    def is_gone(self, actual):
        """True once a removal has taken effect."""
        return actual is None

    # The usual way.

    def plan(self, actual, state):
        """What the task does about the object."""
        if state == "absent":
            labels = None
            if self.owned and actual is not None:
                labels = dict((get_path(actual, self.labels_read) or {}).get("labels") or {})
            return to_absent(self.kind, self.name, self.fields, actual, labels,
                             self.params.get("manage_foreign"))
        return to_present(self.kind, self.name, self.fields, self.params, actual)

    def create(self, plan):
        """Creates the object and returns it."""
        request = dict(create_request(self.fields, plan.wanted, self.owned), **self.scope())
        return self.client.call(self.service, "Create", request).get(self.key)

    def update(self, plan, actual):
        """Changes the object and returns it."""
        request = update_request(plan, actual)
        request.update(self.address(actual))
        request["updateMeta"] = self.lock(actual)
        return self.client.call(self.service, "Update", request, self.headers()).get(self.key)

    def lock(self, actual):
        """The optimistic lock of a change."""
        lock = {"lockingStrategy": "OPTIMISTIC_LOCKING_STRATEGY_%s" % self.locking}
        if self.locking == "CLIENT":
            lock["updatedAt"] = get_path(actual, "meta.updatedAt")
        return lock

    def delete(self, actual):
        """Removes the object."""
        self.client.call(self.service, "Delete", self.address(actual), self.headers())

    def address(self, actual):
        """The fields of a request that name the object."""
        return dict(self.scope(), **{self.id_option: get_path(actual, self.identity)})

    # Helpers of the subclasses.

    def only(self, found, hint="give its id"):
        """The one object of a list; None for none."""
        if len(found) > 1:
            ids = ", ".join(str(get_path(one, self.identity)) for one in found[:8])
            raise Refusal("%s %s is not the only one of its name: %s; %s" % (
                self.kind, self.name, ids, hint))
        return found[0] if found else None

    def wait_until(self, settled):
        """Looks at the object until `settled` says yes."""
        end = time.monotonic() + self.params["wait_timeout"]
        while True:
            actual = self.find()
            if settled(actual):
                return actual
            if time.monotonic() + POLL > end:
                raise Refusal("%s %s is not ready after %d s: %s; look at it, or raise wait_timeout"
                              % (self.kind, self.name, self.params["wait_timeout"],
                                 self.describe(actual)))
            time.sleep(POLL)

    def describe(self, actual):
        """How far the object is, for the message of a wait that ended."""
        return "it is still there" if actual else "it is not there"
