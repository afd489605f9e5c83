# Copyright (c) 2026, the metalmesh authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of the API in templates."""
from __future__ import annotations

DOCUMENTATION = r"""
name: metalmesh
short_description: Objects of the API in templates
version_added: 0.1.0
author: the metalmesh authors (@metalmesh)
description:
  - Gets one object, or searches for objects.
  - Further options are those of the module C(KIND_info).
extends_documentation_fragment:
  - metalmesh.metalmesh.controller
options:
  _terms:
    description:
      - V(get) or V(search), and a kind of object.
      - Kinds are V(tenant), V(project), V(member), V(token), V(component), V(machine), V(firewall), V(network),
        V(ip), V(image), V(size), V(partition), V(filesystem_layout), V(switch), V(pool), V(claim) and
        V(firewall_rules).
    type: list
    elements: str
    required: true
  api_hmac:
    description: Taken for templates of metal-stack's lookup, and not used. The API takes a token.
    type: str
  api_hmac_user:
    description: Taken for templates of metal-stack's lookup, and not used.
    type: str
"""

EXAMPLES = r"""
- name: The image's URL
  ansible.builtin.debug:
    msg: "{{ lookup('metalmesh.metalmesh.metalmesh', 'get', 'image', id='debian-12.0.20260101').url }}"

- name: Addresses of a project
  ansible.builtin.debug:
    msg: "{{ query('metalmesh.metalmesh.metalmesh', 'search', 'ip', project=web.id) | map(attribute='ip') }}"
"""

RETURN = r"""
_raw:
  description: The objects as the module C(KIND_info) returns them. With V(get) it is exactly one.
  type: list
  elements: dict
"""

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.info import fetched, spec_of
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.listings import LISTINGS
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.presentation import presented
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import ValueProblem
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.settings import (
    SettingsError, resolve)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.transport import (
    ApiClient, ApiError)

CONNECTION = ("api_url", "api_token", "api_token_file", "api_timeout", "validate_certs", "ca_path",
              "api_hmac", "api_hmac_user")
# What identifies an object of a kind whose id is called otherwise.
IDS = {"tenant": "login", "ip": "ip", "claim": "name"}


class LookupModule(LookupBase):
    """The plugin."""

    def run(self, terms, variables=None, **kwargs):
        """Gets or searches."""
        if len(terms) != 2 or terms[0] not in ("get", "search") or terms[1] not in LISTINGS:
            raise AnsibleError("write get or search, and one of %s" % ", ".join(sorted(LISTINGS)))
        action, kind = terms
        self.set_options(var_options=variables, direct={
            name: value for name, value in kwargs.items() if name in CONNECTION})
        params = self._params(kind, kwargs)
        options = {name: self.get_option(name) for name in CONNECTION}
        try:
            client = ApiClient(resolve(options, environment={}))
            found = fetched(LISTINGS[kind], client, params)
        except ApiError as error:
            raise AnsibleError(error.describe()) from error
        except (SettingsError, ValueProblem) as error:
            raise AnsibleError(str(error)) from error
        if action == "get" and len(found) != 1:
            raise AnsibleError("%d objects instead of one are a %s with %s" % (
                len(found), kind, params))
        return [presented(one) for one in found]

    def _params(self, kind, kwargs):
        """The options of the list, which have to be ones that it has."""
        params = {name: value for name, value in kwargs.items()
                  if name not in CONNECTION and name != "wantlist"}
        if "id" in params and kind in IDS:
            params[IDS[kind]] = params.pop("id")
        unknown = sorted(set(params) - set(spec_of(LISTINGS[kind])))
        if unknown:
            raise AnsibleError("a %s has no option %s; it has %s" % (
                kind, ", ".join(unknown), ", ".join(sorted(spec_of(LISTINGS[kind])))))
        return params
