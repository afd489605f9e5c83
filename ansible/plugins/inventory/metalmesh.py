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
  - A host is named by the UUID of its machine. Host names and labels of machines are the choice of their
    tenants, who could name a machine C(localhost) or like a host of the operator's.
  - A machine never takes the name of a host or group that the inventory has already, of Ansible's own and of
    O(reserved_names). It is listed by its UUID then, with a warning.
  - Groups are V(metalmesh_machines), V(metalmesh_firewalls), V(metalmesh_project_ID), V(metalmesh_size_ID),
    V(metalmesh_partition_ID), V(metalmesh_image_ID) and V(metalmesh_rack_ID).
  - Variables of hosts are those of metal-stack's published inventory, and C(metalmesh_machine), which is
    the machine as M(metalmesh.metalmesh.machine_info) returns it, without its user data.
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
      - Without them those of the caller's projects.
    type: list
    elements: str
    default: []
  all_projects:
    description:
      - Whether the machines of all projects are listed. It needs an admin role.
      - The inventory then has machines of every tenant. Tasks for C(all) hosts run there, and each tenant
        chooses by labels in which of O(keyed_groups) its machines are.
    type: bool
    default: false
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
      - With V(metal) hosts and groups are named as in metal-stack's published inventory. Hosts have the host
        name of their allocation, and are reached by it without an external address. Groups are the bare ids of
        project, size, partition, image and rack, V(metal) and V(metal-firewalls).
      - Use it only for projects whose members you trust. A tenant chooses the host name, and the agent of a
        leaf the rack, so that tasks meant for another host may run on theirs. Names of hosts and groups
        that the inventory has already are refused. Put the file behind those with your own hosts, and
        their names into O(reserved_names).
    type: str
    choices: [none, metal]
    default: none
  external_network_id:
    description:
      - Network whose address is C(ansible_host).
      - A machine without one has its name in the inventory there. Give it another address by O(compose), or
        by O(static_machine_ip_mapping).
    type: str
    default: internet
  static_machine_ip_mapping:
    description: Addresses by name in the inventory or by UUID, which take precedence.
    type: dict
    default: {}
  hostnames:
    description:
      - Jinja2 expressions for the name of a host, with its variables. The first one with a value counts.
      - Without one the UUID of the machine counts, with O(compat=metal) the host name of the allocation.
      - Values such as C(metal_hostname) are the tenants' choice. A name that two machines have counts for
        neither.
    type: list
    elements: str
    default: []
  reserved_names:
    description:
      - Names of hosts and groups that no machine may have, beyond those that the inventory has when this file
        is read, C(localhost), addresses, the groups of the collection's playbooks, C(metal) and
        C(metal-firewalls).
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
# Their members set the labels that the groups below are made of.
projects: [0b7f1b9e-3a3f-4c55-9b36-6c5a3c1f0d11]
filters:
  partition: fra-1
hostnames: [metal_project ~ '-' ~ metal_hostname]
keyed_groups:
  - key: metalmesh_machine.allocation.meta.labels.role
    prefix: role
compose:
  ansible_host: metal_internal_ip

# As metal-stack's inventory has it
---
plugin: metalmesh.metalmesh.metalmesh
compat: metal
reserved_names: [gitlab, database]
"""

import json
import os

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.hosts import (
    TakenNames, address, chosen_names, fixed_groups, host_name, host_variables, is_listed, own_groups,
    published_groups, stored, unprefixed)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.info import fetched
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.listings import LISTINGS
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.private import problem_of
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
        self._read_privately(path)
        bare = unprefixed(self.get_option("keyed_groups"))
        if bare is not None:
            raise AnsibleParserError(
                "%s: keyed_groups: %s has no prefix; its values come from machines, and could name a group "
                "of other hosts; give it a prefix and a separator" % (path, bare))
        try:
            found = self._found(path, cache)
        except (ApiError, SettingsError, ValueProblem) as error:
            text = error.describe() if isinstance(error, ApiError) else str(error)
            raise AnsibleParserError("%s: %s" % (path, text)) from error
        managed_only = self._is_compat() or self.get_option("managed_only")
        machines = [one for one in found["machines"] if is_listed(one, managed_only)]
        self._add_all(machines, {project["uuid"]: project for project in found["projects"]})

    def _is_compat(self):
        return self.get_option("compat") == "metal"

    def _read_privately(self, path):
        """Reads the options. A cache plugin that makes its directory makes it for the caller alone; the files
        in it are open to all, whatever the mask is."""
        before = os.umask(0o077)
        try:
            self._read_config_data(path)
            if not self.get_option("cache"):
                return
            self.load_cache_plugin()
        finally:
            os.umask(before)
        folder = getattr(self._cache._plugin, "_cache_dir", None)
        problem = problem_of(folder) if folder else None
        if problem:
            raise AnsibleParserError(
                "%s: cache_connection: %s; what is in the cache decides where tasks run, and it has data of "
                "tenants: name a directory of your own, such as ~/.cache/metalmesh-inventory" % (path, problem))

    def _found(self, path, cache):
        """Machines and projects, from the cache if it may be used."""
        caching = self.get_option("cache")
        key = self.get_cache_key(path)
        if caching and cache:
            try:
                # JSON has no marks of trust: a template in the cache stays the text that it is.
                found = json.loads(json.dumps(self._cache[key]))
                return {"machines": found["machines"], "projects": found["projects"]}
            except (KeyError, TypeError, ValueError):
                pass
        found = self._fetched()
        if caching:
            self._cache[key] = found
        return found

    def _fetched(self):
        client = ApiClient(resolve(self._connection(), environment={}))
        wanted = self.get_option("projects")
        if wanted or self.get_option("all_projects"):
            known = fetched(LISTINGS["project"], client, {})
        else:
            known = client.call("metalstack.api.v2.ProjectService", "List", {}).get("projects", [])
            wanted = [project["uuid"] for project in known]
            if not wanted:
                self.display.warning("the caller has no project; give projects, or all_projects: true "
                                     "with an admin role")
        if self.get_option("all_projects"):
            wanted = [None]
        machines = []
        for project in wanted:
            params = dict(self.get_option("filters"), project=project)
            machines.extend(fetched(LISTINGS["machine"], client, params))
        return {"machines": [stored(machine) for machine in machines], "projects": known}

    def _connection(self):
        """The options of the connection; the two texts may be templates."""
        options = {name: self.get_option(name) for name in CONNECTION}
        for name in ENVIRONMENT:
            if options[name] and self.templar.is_template(options[name]):
                options[name] = self.templar.template(options[name])
        return options

    def _add_all(self, machines, projects):
        """Names first: whether one may be had depends on the others."""
        every = {one["uuid"]: host_variables(one, projects, self.get_option("ansible_user"))
                 for one in machines}
        hosts = {name: host.vars.get("metal_id") for name, host in self.inventory.hosts.items()}
        taken = TakenNames(hosts, self.inventory.groups, self.get_option("reserved_names"))
        wanted = {one["uuid"]: self._name(one, every[one["uuid"]]) for one in machines}
        names, warnings = chosen_names(wanted, taken)
        for warning in warnings:
            self.display.warning(warning)
        groups = self._groups(machines, taken, set(names.values()))
        for machine in machines:
            name = names[machine["uuid"]]
            if name is not None:
                self._add(name, machine, every[machine["uuid"]], groups)

    def _add(self, host, machine, variables, groups):
        reached = address(machine, host, self.get_option("external_network_id"),
                          self.get_option("static_machine_ip_mapping"))
        variables["ansible_host"] = reached or (host if self._is_compat() else machine["uuid"])
        self.inventory.add_host(host)
        for name, value in variables.items():
            self.inventory.set_variable(host, name, value)
        for group in groups[machine["uuid"]]:
            self.inventory.add_child(self.inventory.add_group(group), host)
        strict = self.get_option("strict")
        self._set_composite_vars(self.get_option("compose"), variables, host, strict=strict)
        variables = self.inventory.get_host(host).get_vars()
        self._add_host_to_composed_groups(self.get_option("groups"), variables, host, strict=strict)
        self._add_host_to_keyed_groups(self.get_option("keyed_groups"), variables, host,
                                       strict=strict)

    def _groups(self, machines, taken, hosts):
        """The groups of each machine, by its UUID. Published names stay as they are, but for those that
        stand for something else."""
        if not self._is_compat():
            return {one["uuid"]: own_groups(one) for one in machines}
        ids = {group for one in machines for group in published_groups(one)}
        refused = {}
        for group in sorted(ids):
            problem = taken.problem_of_group(group) or self._problem_of_group(group)
            if problem or group in hosts:
                refused[group] = problem or "a machine has it"
                self.display.warning("no group is called %r: %s" % (group, refused[group]))
        return {one["uuid"]: fixed_groups(one) + [
            group for group in published_groups(one) if group not in refused] for one in machines}

    def _problem_of_group(self, name):
        """A group that is there already is one of machines: another file of this plugin made it."""
        group = self.inventory.groups.get(name)
        if group is None:
            return None
        is_of_machines = group.hosts and all("metal_id" in host.vars for host in group.hosts)
        if is_of_machines and not group.child_groups and not group.vars:
            return None
        return "a group of other hosts has it"

    def _name(self, machine, variables):
        for expression in self.get_option("hostnames"):
            name = self._compose(expression, variables)
            if name:
                return str(name)
        return host_name(machine) if self._is_compat() else machine["uuid"]
