# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a module: options in, one plan, the calls of the plan, one result."""
from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.plan import CREATE, DELETE, UPDATE
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.presentation import (
    get_path, presented)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.problems import (
    Refusal, ValueProblem)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.settings import (
    CONNECTION_OPTIONS, SettingsError, resolve)
from ansible_collections.metalmesh.metalmesh.plugins.module_utils.transport import (
    ABOUT_THE_STATE, ApiClient, ApiError)


def new_module(spec, conditions=None, writes=True):
    """The AnsibleModule with the options of the connection."""
    return AnsibleModule(argument_spec=dict(CONNECTION_OPTIONS, **spec), supports_check_mode=True,
                         **(conditions or {}))


def connect(module):
    """A client with the settings of the task; ends the module if there are none."""
    try:
        settings = resolve(module.params)
    except SettingsError as error:
        module.fail_json(msg=str(error))
    for notice in settings.notices:
        module.warn(notice)
    return ApiClient(settings, dry_run=module.check_mode)


def fail(module, error):
    """Ends the module with what went wrong."""
    if isinstance(error, ApiError):
        module.fail_json(msg=error.describe(), code=error.code, number=error.number)
    module.fail_json(msg=str(error))


def run(handler_class):
    """Runs the module of a kind of object."""
    module = new_module(handler_class.argument_spec(), handler_class.conditions)
    client = connect(module)
    try:
        handler = handler_class(client, module.params)
        result = execute(module, handler)
    except (ApiError, Refusal, ValueProblem) as error:
        fail(module, error)
    module.exit_json(**result)


def execute(module, handler):
    """Finds the object, plans, and carries out the plan or tries it."""
    state = module.params["state"]
    actual = handler.find()
    if state != "absent":
        handler.prepare(actual)
    plan = handler.plan(actual, state)
    for warning in plan.warnings:
        module.warn(warning)
    after = actual
    if plan.changes:
        after = attempt(module, handler, plan, actual)
    if handler.waits and module.params["wait"] and not module.check_mode:
        after = handler.wait_until(handler.is_gone if state == "absent" else handler.is_settled)
    result = {"changed": plan.changes, "diff": plan.diff(), handler.kind: presented(after or {})}
    identity = get_path(after or actual or {}, handler.identity)
    if identity is not None:
        result["id"] = identity
    result.update(handler.extra(after))
    return result


def attempt(module, handler, plan, actual):
    """Carries out a plan. In check mode the calls are dry runs: the server judges them, too."""
    try:
        return carry_out(handler, plan, actual)
    except ApiError as error:
        if not module.check_mode or error.code not in ABOUT_THE_STATE:
            raise
        module.warn("the dry run was refused, which may be due to tasks before this one that only "
                    "pretended: %s" % error.describe())
        return actual


def carry_out(handler, plan, actual):
    """Calls what a plan says."""
    if plan.action == CREATE:
        return handler.create(plan)
    if plan.action == UPDATE:
        return handler.update(plan, actual)
    if plan.action == DELETE:
        handler.delete(actual)
    return None
