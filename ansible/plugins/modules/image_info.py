#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: image_info
short_description: Looks up images
version_added: 0.1.0
description:
  - Lists images.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.info
  - metalmesh.metalmesh.info.labels
options:
  id:
    description: Only the one of this id.
    type: str
  name:
    description: Only those of this name.
    type: str
  os:
    description: Only images of this operating system.
    type: str
  classification:
    description: Only images of this classification.
    type: str
    choices: [preview, supported, deprecated]
  feature:
    description: Only images for this.
    type: str
    choices: [machine, firewall]
  latest:
    description: Whether only the newest image of O(os) is returned.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: The newest Debian
  metalmesh.metalmesh.image_info:
    os: debian-12
    latest: true
  register: found
"""

RETURN = r"""
images:
  description: The images.
  returned: success
  type: list
  elements: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.codecs import Choice
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.enums import choices
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.info import (
    Filter, Listing, labels_filter, request_of, run_info)

IMAGES = "metalstack.api.v2.ImageService"


def images(client, params):
    """The images, or the newest one of an operating system."""
    request = request_of(LISTING, params)
    if not params["latest"]:
        return client.call(IMAGES, "List", request).get("images", [])
    query = {name: part for name, part in request["query"].items()
             if name in ("os", "classification")}
    newest = (client.find(IMAGES, "Latest", query) or {}).get("image")
    return [newest] if newest else []


LISTING = Listing("images", "images", IMAGES, (
    Filter("id", "query.id"),
    Filter("name", "query.name"),
    Filter("os", "query.os"),
    Filter("classification", "query.classification", Choice("IMAGE_CLASSIFICATION"),
           {"type": "str", "choices": choices("IMAGE_CLASSIFICATION")}),
    Filter("feature", "query.feature", Choice("IMAGE_FEATURE"),
           {"type": "str", "choices": choices("IMAGE_FEATURE")}),
    labels_filter(),
), fetch=images, options={"latest": {"type": "bool", "default": False}},
    conditions={"required_if": [["latest", True, ["os"]]]})


def main():
    run_info(LISTING)


if __name__ == "__main__":
    main()
