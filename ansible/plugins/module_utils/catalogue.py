# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Objects of the whole site that are known by an id of the administrator's choice."""
from __future__ import annotations

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.handler import Handler
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.plan import create_request

IDENTITY = {"type": "str", "required": True}


class CatalogueItem(Handler):
    """An image, a size, a partition or a filesystem layout: read by all, written by administrators."""

    labels_create = "meta.labels"
    options = {"id": IDENTITY}

    @property
    def name(self):
        return self.params["id"]

    def find(self):
        service = self.service.replace(".admin.", ".api.")
        answer = self.client.find(service, "Get", {"id": self.name}) or {}
        found = answer.get(self.key)
        # An image is also found by its name without a version, which is another one then.
        return found if found and found.get("id") == self.name else None

    def create(self, plan):
        # They are created whole: the object is in the request as it is in answers.
        made = dict(create_request(self.fields, plan.wanted), id=self.name)
        return self.client.call(self.service, "Create", {self.key: made}).get(self.key)
