# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Modules that only look: a table of the query's options, and the services that answer it."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Optional, Tuple

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.codecs import Codec
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.presentation import (
    presented, set_path)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import (
    Refusal, ValueProblem)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.runner import (
    connect, fail, new_module)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.transport import ApiError


class LabelsQuery(Codec):
    """Labels that an object has, all of them."""

    def wanted(self, value):
        return {str(key): str(item) for key, item in value.items()}

    def created(self, wanted):
        return {"labels": wanted}


@dataclass(frozen=True)
class Filter:
    """An option that narrows a list, and its place in the request."""

    option: str
    path: str
    codec: Codec = field(default_factory=Codec)
    spec: Dict[str, Any] = field(default_factory=lambda: {"type": "str"})


@dataclass(frozen=True)
class Listing:
    """A list of objects.

    With `project` the list is asked of `service`, which lists what is in one project; without it
    of `all_service`, which needs an admin role. `service` alone lists what everybody may see.
    """

    result: str
    key: str
    service: str
    filters: Tuple[Filter, ...] = ()
    all_service: Optional[str] = None
    method: str = "List"
    options: Dict[str, Any] = field(default_factory=dict)
    conditions: Dict[str, Any] = field(default_factory=dict)
    fetch: Optional[Callable] = None
    # Parts of the request that no option sets, by their places.
    fixed: Dict[str, Any] = field(default_factory=dict)


def labels_filter(path="query.labels"):
    """The option that narrows a list to objects with all of some labels."""
    return Filter("labels", path, LabelsQuery(), {"type": "dict"})


def request_of(listing, params):
    """The request of a list."""
    request = {}
    for one in listing.filters:
        value = params.get(one.option)
        if value is not None:
            set_path(request, one.path, one.codec.created(one.codec.wanted(value)))
    for path, value in listing.fixed.items():
        set_path(request, path, value)
    return request


def fetched(listing, client, params):
    """The objects of a list, as the API has them."""
    if listing.fetch:
        return listing.fetch(client, params)
    service = listing.service
    if listing.all_service and not params.get("project"):
        service = listing.all_service
    return client.call(service, listing.method, request_of(listing, params)).get(listing.key, [])


def spec_of(listing):
    """The options of a module that lists."""
    spec = {one.option: one.spec for one in listing.filters}
    spec.update(listing.options)
    return spec


def run_info(listing):
    """Runs a module that lists."""
    module = new_module(spec_of(listing), listing.conditions)
    client = connect(module)
    try:
        found = fetched(listing, client, module.params)
    except (ApiError, Refusal, ValueProblem) as error:
        fail(module, error)
    module.exit_json(changed=False, **{listing.result: [presented(one) for one in found]})
