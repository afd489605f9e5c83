#!/usr/bin/python
# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: image
short_description: Operating system images
version_added: 0.1.0
description:
  - Creates, changes and deletes images. It needs an admin role.
author: the metalmesh authors (@metalmesh)
extends_documentation_fragment:
  - metalmesh.metalmesh.connection
  - metalmesh.metalmesh.resource
  - metalmesh.metalmesh.resource.state
  - metalmesh.metalmesh.resource.labels
options:
  id:
    description: Id with its version, such as V(debian-12.0.20260101).
    type: str
    required: true
  url:
    description:
      - URL of the image. Control reads the digest at V(URL.sha256) or V(URL.sha512), or the whole image,
        unless the label V(metalmesh.dev/digest) has it.
      - It is required for a new image.
    type: str
  name:
    description: Name.
    type: str
  description:
    description: Free text.
    type: str
  features:
    description: What the image is for.
    type: list
    elements: str
    choices: [machine, firewall]
  classification:
    description: How far users may rely on the image.
    type: str
    choices: [preview, supported, deprecated]
  expires_at:
    description: End of its life, such as V(2027-01-31T12:00:00Z).
    type: str
"""

EXAMPLES = r"""
- name: An image
  metalmesh.metalmesh.image:
    id: debian-12.0.20260101
    url: https://images.example/debian-12.tar.zst
    features: [machine]
    classification: supported
    labels:
      metalmesh.dev/networking: bridged
"""

RETURN = r"""
id:
  description: Id of the image.
  returned: when there is one
  type: str
image:
  description: The image. In check mode as it would be.
  returned: success
  type: dict
"""

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.catalogue import CatalogueItem
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.codecs import (
    Choice, ChoiceSet, Moment)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.enums import choices
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.plan import Field
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import Refusal
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.runner import run


class Image(CatalogueItem):
    """An image of the catalogue."""

    kind = "image"
    key = "image"
    service = "metalstack.admin.v2.ImageService"

    @classmethod
    def table(cls):
        return (
            Field("url", "url"),
            Field("name", "name"),
            Field("description", "description"),
            Field("features", "features", ChoiceSet("IMAGE_FEATURE"), keeps_empty=True,
                  spec={"type": "list", "elements": "str", "choices": choices("IMAGE_FEATURE")}),
            Field("classification", "classification", Choice("IMAGE_CLASSIFICATION"),
                  spec={"type": "str", "choices": choices("IMAGE_CLASSIFICATION")}),
            Field("expires_at", "expiresAt", Moment()),
        )

    def prepare(self, actual):
        if actual is None and not self.params["url"]:
            raise Refusal("image %s does not exist; give the url of a new one" % self.name)


def main():
    run(Image)


if __name__ == "__main__":
    main()
