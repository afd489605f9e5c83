"""Decisions of oslo.policy, for the tests of control/oslo.

    pip install ironic==39.0.0 oslo.policy==6.0.1
    python ironic_policy.py control/oslo/tests/data/guide-metalsmith.yaml > ....decisions

Prints one line for each rule of Ironic and of the file (none: the defaults): its name, and for each
sample object a mask of the sample callers that are permitted, in hexadecimal. The samples are those
of control/oslo/src/persona, in the same order.
"""

import logging
import sys
import tempfile
import warnings

from ironic.common import policy as ironic
from oslo_config import cfg
from oslo_context import context
from oslo_policy import policy

ROLES = [
    ("admin", "manager", "member", "reader"),
    ("manager", "member", "reader"),
    ("member", "reader"),
    ("reader",),
    ("service",),
    (),
]
OWNER, LESSEE, OTHER = "project-owner", "project-lessee", "project-other"
NAMES = {OWNER: "owner", LESSEE: "lessee", OTHER: "other"}


def caller(roles, name=None, **scope):
    values = dict(context.RequestContext(roles=list(roles), **scope).to_policy_values())
    values.update(project_name=name, is_public_api=False)
    return values


def callers():
    found = [caller(roles, system_scope="all") for roles in ROLES if roles]
    elevated = caller(["service"], "service", project_id="project-services")
    elevated["config.service_project_name"] = "service"
    found.append(elevated)
    for project in (OWNER, LESSEE, OTHER):
        found += [caller(roles, NAMES[project], project_id=project) for roles in ROLES]
    return found


def targets():
    """As Ironic makes them: a lessee is only there if there is one, an owner may be None."""
    for owner, lessee in [(OWNER, LESSEE), (OWNER, None), (None, LESSEE), (None, None)]:
        target = {"node.owner": owner}
        if lessee:
            target["node.lessee"] = lessee
        yield target
    for kind in ("allocation", "runbook"):
        for owner in (OWNER, None):
            yield {kind + ".owner": owner}
    yield {}


def main():
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    conf = cfg.ConfigOpts()
    conf([])
    empty = tempfile.NamedTemporaryFile("w", suffix=".yaml")
    path = sys.argv[1] if len(sys.argv) > 1 else empty.name
    enforcer = policy.Enforcer(conf, policy_file=path)
    enforcer.register_defaults(ironic.list_policies())
    enforcer.load_rules()
    for rule in enforcer.rules:
        masks = []
        for target in targets():
            mask = 0
            for bit, values in enumerate(callers()):
                # Ironic's targets are copies of the caller's values, and the object's beside them.
                if enforcer.enforce(rule, {**values, **target}, dict(values)):
                    mask |= 1 << bit
            masks.append(f"{mask:06x}")
        print(rule, *masks)


main()
