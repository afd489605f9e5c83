# Copyright (c) 2026, the metalmesh authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines of projects as hosts."""
from __future__ import annotations

DOCUMENTATION = r"""
name: metalmesh
short_description: Machines of projects as hosts
version_added: 0.1.0
author: the metalmesh authors (@metalmesh)
description:
  - Lists machines and firewalls that projects have as hosts.
  - Its file is named C(*.metalmesh.yml) or C(*.metalmesh.yaml).
  - Variables of hosts are those of metal-stack's published inventory, and C(metalmesh_machine), which is
    the machine as M(metalmesh.metalmesh.machine_info) returns it.
extends_documentation_fragment:
  - metalmesh.metalmesh.controller
  - constructed
  - inventory_cache
options:
  plugin:
    description: Name of the plugin.
    type: str
    required: true
    choices: [metalmesh.metalmesh.metalmesh]
  projects:
    description:
      - UUIDs of the projects whose machines are listed.
      - Without them those of all projects with an admin role, else those of the caller's projects.
    type: list
    elements: str
    default: []
  filters:
    description: Only machines with these values, by option of M(metalmesh.metalmesh.machine_info).
    type: dict
    default: {}
  managed_only:
    description:
      - Whether only machines with the label V(ci.metal-stack.io/manager=ansible) are listed.
      - O(compat=metal) sets it.
    type: bool
    default: false
  compat:
    description:
      - With V(metal) groups are named as in metal-stack's published inventory. They are the bare ids of
        project, size, partition, image and rack, V(metal) and V(metal-firewalls).
      - With V(none) they are V(metalmesh_machines), V(metalmesh_firewalls), V(project_ID), V(size_ID),
        V(partition_ID), V(image_ID) and V(rack_ID).
    type: str
    choices: [none, metal]
    default: none
  external_network_id:
    description: Network whose address is C(ansible_host). A machine without one is reached by its host name.
    type: str
    default: internet
  static_machine_ip_mapping:
    description: Addresses by host name, which take precedence.
    type: dict
    default: {}
  hostnames:
    description:
      - Jinja2 expressions for the name of a host, with its variables. The first one with a value counts.
      - Without one the host name of the allocation counts.
    type: list
    elements: str
    default: []
  ansible_user:
    description: User of all hosts.
    type: str
    default: metal
"""

EXAMPLES = r"""
# site.metalmesh.yml
plugin: metalmesh.metalmesh.metalmesh
api_url: https://mesh.example
api_token_file: ~/.config/metalmesh/token
filters:
  partition: fra-1
keyed_groups:
  - key: metalmesh_machine.allocation.meta.labels.role
    prefix: role
compose:
  ansible_host: metal_internal_ip

# As metal-stack's inventory has it
---
plugin: metalmesh.metalmesh.metalmesh
compat: metal
"""

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.hosts import (
    host_name, host_variables, is_listed, own_groups, published_groups)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.info import fetched
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.listings import LISTINGS
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import ValueProblem
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.settings import (
    ENVIRONMENT, SettingsError, resolve)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.transport import (
    ApiClient, ApiError)

CONNECTION = ("api_url", "api_token", "api_token_file", "api_timeout", "validate_certs", "ca_path")


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    """The plugin."""

    NAME = "metalmesh.metalmesh.metalmesh"

    def verify_file(self, path):
        """Takes files of its own name alone."""
        return super().verify_file(path) and path.endswith((".metalmesh.yml", ".metalmesh.yaml"))

    def parse(self, inventory, loader, path, cache=True):
        """Reads a file and adds its hosts."""
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        try:
            found = self._found(path, cache)
        except (ApiError, SettingsError, ValueProblem) as error:
            text = error.describe() if isinstance(error, ApiError) else str(error)
            raise AnsibleParserError("%s: %s" % (path, text)) from error
        projects = {project["uuid"]: project for project in found["projects"]}
        compat = self.get_option("compat") == "metal"
        managed_only = compat or self.get_option("managed_only")
        for machine in found["machines"]:
            if is_listed(machine, managed_only):
                self._add(machine, projects, published_groups if compat else own_groups)

    def _found(self, path, cache):
        """Machines and projects, from the cache if it may be used."""
        self.load_cache_plugin()
        key = self.get_cache_key(path)
        caching = self.get_option("cache")
        if caching and cache:
            try:
                return self._cache[key]
            except KeyError:
                pass
        found = self._fetched()
        if caching:
            self._cache[key] = found
        return found

    def _fetched(self):
        client = ApiClient(resolve(self._connection(), environment={}))
        known = fetched(LISTINGS["project"], client, {})
        wanted = self.get_option("projects")
        if not wanted and client.is_admin:
            wanted = [None]
        elif not wanted:
            wanted = [project["uuid"] for project in known]
        machines = []
        for project in wanted:
            params = dict(self.get_option("filters"), project=project)
            machines.extend(fetched(LISTINGS["machine"], client, params))
        return {"machines": machines, "projects": known}

    def _connection(self):
        """The options of the connection; the two texts may be templates."""
        options = {name: self.get_option(name) for name in CONNECTION}
        for name in ENVIRONMENT:
            if options[name] and self.templar.is_template(options[name]):
                options[name] = self.templar.template(options[name])
        return options

    def _add(self, machine, projects, groups_of):
        variables = host_variables(
            machine, projects, self.get_option("external_network_id"),
            self.get_option("static_machine_ip_mapping"), self.get_option("ansible_user"))
        host = self._name(machine, variables)
        self.inventory.add_host(host)
        for name, value in variables.items():
            self.inventory.set_variable(host, name, value)
        for group in groups_of(machine):
            self.inventory.add_child(self.inventory.add_group(self._group(group)), host)
        strict = self.get_option("strict")
        self._set_composite_vars(self.get_option("compose"), variables, host, strict=strict)
        variables = self.inventory.get_host(host).get_vars()
        self._add_host_to_composed_groups(self.get_option("groups"), variables, host, strict=strict)
        self._add_host_to_keyed_groups(self.get_option("keyed_groups"), variables, host,
                                       strict=strict)

    def _group(self, name):
        """Published names stay as they are; the setting of Ansible decides about them."""
        if self.get_option("compat") == "metal":
            return name
        return self._sanitize_group_name(name)

    def _name(self, machine, variables):
        for expression in self.get_option("hostnames"):
            name = self._compose(expression, variables)
            if name:
                return str(name)
        return host_name(machine)
