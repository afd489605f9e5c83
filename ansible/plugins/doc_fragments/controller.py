# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Options that find and call the server, of plugins that run on the controller."""
from __future__ import annotations


class ModuleDocFragment:
    """The options of the connection, with their environment variables."""

    DOCUMENTATION = r"""
options:
  api_url:
    description: URL of the API, V(http://HOST:PORT) or V(https://HOST).
    type: str
    env:
      - name: METALMESH_API_URL
      - name: METAL_APIV2_URL
      - name: METALCTLV2_API_URL
      - name: METAL_ANSIBLE_INVENTORY_URL
      - name: METALCTL_API_URL
  api_token:
    description: Bearer token.
    type: str
    env:
      - name: METALMESH_API_TOKEN
      - name: METAL_APIV2_TOKEN
      - name: METALCTLV2_API_TOKEN
      - name: METAL_ANSIBLE_INVENTORY_TOKEN
      - name: METALCTL_APITOKEN
  api_token_file:
    description: File with the bearer token.
    type: path
    env:
      - name: METALMESH_TOKEN_FILE
      - name: METAL_APIV2_TOKEN_FILE
  api_timeout:
    description: Time limit of one call, seconds.
    type: int
    default: 30
  validate_certs:
    description: Whether the certificate of the server is checked.
    type: bool
    default: true
  ca_path:
    description: File with the authorities of the server's certificate, PEM. Default are those of the system.
    type: path
"""
