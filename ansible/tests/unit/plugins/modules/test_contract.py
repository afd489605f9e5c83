# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Names that modules send and read, against the protocol files of the project.

Published methods ignore fields that they do not know, so that a wrong name would be noticed by nobody.
`./dev ansible` says where the files are; the collection alone does not have them.
"""
from __future__ import annotations

import importlib
import os

import pytest

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.catalogue import CatalogueItem
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.listings import LISTINGS
from ansible_collections.metalmesh.metalmesh.tests.unit.schema import Schema

MODULES = "ansible_collections.metalmesh.metalmesh.plugins.modules."
# Modules whose objects have the usual calls, with options that decide about the service.
USUAL = [
    ("claim", "Claim", {}), ("filesystem_layout", "FilesystemLayout", {}),
    ("firewall", "Firewall", {}), ("image", "Image", {}), ("ip", "Address", {}),
    ("machine", "Machine", {}), ("network", "Network", {"type": "super"}),
    ("partition", "Partition", {}), ("project", "Project", {}), ("size", "Size", {}),
    ("tenant", "Tenant", {}), ("token", "Token", {}),
]
# Fields that objects do not show, and that are never compared.
UNSEEN = {("ip", "address_family"), ("ip", "machine"), ("network", "length"),
          ("network", "address_family"), ("token", "expires")}


@pytest.fixture(name="schema", scope="module")
def _schema():
    folder = os.environ.get("METALMESH_SCHEMA")
    if not folder:
        pytest.skip("METALMESH_SCHEMA does not say where the protocol files are")
    return Schema(folder)


def handler_of(name, kind, options):
    """A handler without a client."""
    handler_class = getattr(importlib.import_module(MODULES + name), kind)
    params = {option: spec.get("default") for option, spec in handler_class.argument_spec().items()}
    return handler_class(None, dict(params, **options))


@pytest.mark.parametrize("name,kind,options", USUAL)
def test_requests_and_objects(schema, name, kind, options):
    handler = handler_of(name, kind, options)
    create, created = schema.methods[handler.service + "/Create"]
    update, updated = schema.methods[handler.service + "/Update"]
    thing = schema.message(created, schema.messages[created][handler.key])
    assert thing and handler.key in schema.messages[updated]
    if isinstance(handler, CatalogueItem):
        create = thing
    for field in handler.fields:
        places = [(create, field.create_path), (update, field.update_path)]
        if (name, field.option) not in UNSEEN:
            places.append((thing, field.read))
        for message, path in places:
            assert path is None or not schema.lacks(message, path), field.option


@pytest.mark.parametrize("kind", sorted(LISTINGS))
def test_lists(schema, kind):
    listing = LISTINGS[kind]
    for service in (listing.service, listing.all_service):
        method = "%s/%s" % (service, listing.method)
        # Lists with calls of their own name no service here, or the pools, which have no filters.
        if not listing.key or not service:
            continue
        request, answer = schema.methods[method]
        assert listing.key in schema.messages[answer]
        for one in listing.filters:
            if one.path != "project" or service != listing.all_service:
                assert not schema.lacks(request, one.path), one.option
