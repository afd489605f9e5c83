# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Options that find and call the server."""
from __future__ import annotations


class ModuleDocFragment:
    """What every plugin takes."""

    DOCUMENTATION = r"""
options:
  api_url:
    description:
      - URL of the API, V(http://HOST:PORT) or V(https://HOST).
      - Environment variables E(METALMESH_API_URL), E(METAL_APIV2_URL), E(METALCTLV2_API_URL) and
        E(METALCTL_API_URL) are read in this order if it is not given.
    type: str
  api_token:
    description:
      - Bearer token.
      - Environment variables E(METALMESH_API_TOKEN), E(METAL_APIV2_TOKEN), E(METALCTLV2_API_TOKEN)
        and E(METALCTL_APITOKEN) are read in this order if neither it nor O(api_token_file) is given.
    type: str
  api_token_file:
    description:
      - File with the bearer token, on the host where the module runs.
      - Environment variables E(METALMESH_TOKEN_FILE) and E(METAL_APIV2_TOKEN_FILE).
    type: path
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
  api_hmac:
    description:
      - Taken for playbooks of metal-stack's modules, and not used. The API takes a token.
      - It is an error if there is no token beside it.
    type: str
  api_hmac_user:
    description: Taken for playbooks of metal-stack's modules, and not used.
    type: str
requirements:
  - Nothing beyond Python on the host where the module runs.
"""
