# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Labels: what a user wants, what others keep there, and the mark of ownership."""
from __future__ import annotations

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.codecs import Codec
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import ValueProblem

# Mark of objects that were made by Ansible. `state=absent` refuses objects without it.
OWNER_LABEL = "ci.metal-stack.io/manager"
OWNER = "ansible"
# Labels of others: they stay although a task does not name them.
KEPT_PREFIXES = ("cluster.metal-stack.io/", "machine.metal-stack.io/", "ci.metal-stack.io/",
                 "metal-stack.infrastructure.cluster.x-k8s.io/", "metalmesh.dev/")

LABEL_OPTIONS = {
    "labels": {"type": "dict"},
    "purge_labels": {"type": "bool", "default": True},
}


def is_owned(labels):
    """True if Ansible made the object."""
    return labels.get(OWNER_LABEL) == OWNER


def of_tags(tags):
    """Labels of tags, which are `key=value` or `key`."""
    pairs = (str(tag).partition("=") for tag in tags)
    return {key: value for key, _sign, value in pairs}


def of_options(params):
    """The labels that a task asks for; None if it does not say."""
    labels, tags = params.get("labels"), params.get("tags")
    if labels is None and tags is None:
        return None
    merged = of_tags(tags or [])
    for key, value in (labels or {}).items():
        if value is None or isinstance(value, (dict, list)):
            raise ValueProblem("%s has no text as its value" % key)
        merged[str(key)] = value if isinstance(value, str) else str(value)
    return merged


class Labels(Codec):
    """The labels of an object, changed by a patch that leaves those of others alone."""

    def __init__(self, purge):
        self.purge = purge

    def observed(self, value):
        return dict((value or {}).get("labels") or {})

    def same(self, wanted, observed):
        return self.merged(wanted, observed) == observed

    def merged(self, wanted, observed):
        if not self.purge:
            return dict(observed, **wanted)
        kept = {key: value for key, value in observed.items() if key.startswith(KEPT_PREFIXES)}
        return dict(kept, **wanted)

    def created(self, wanted):
        return {"labels": wanted}

    def updated(self, wanted, observed):
        after = self.merged(wanted, observed)
        update = {key: value for key, value in after.items() if observed.get(key) != value}
        patch = {"remove": sorted(set(observed) - set(after))}
        if update:
            patch["update"] = {"labels": update}
        return {"patch": patch}


class PlainLabels(Labels):
    """Labels of objects whose requests replace them all: a plain map."""

    def observed(self, value):
        return dict(value or {})

    def created(self, wanted):
        return wanted

    def updated(self, wanted, observed):
        return self.merged(wanted, observed)
