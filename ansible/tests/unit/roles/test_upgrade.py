# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""The steps of an upgrade, without the packages."""
from __future__ import annotations

import json
import os

import pytest

from ansible_collections.metalmesh.metalmesh.tests.unit.roles.site import Api, Site

ROLE = [{"name": "Upgrade", "ansible.builtin.include_role": {"name": "metalmesh.metalmesh.upgrade"}}]
PLAN = {"target": {"version": "2", "feature_level": 3}, "steps": [{"step": "transfer-leader", "node": 2}],
        "obstacles": [], "notes": [], "level_in_use": 3, "level_afterwards": 3}


def upgraded(tmp_path, dead=(), hosts=("one", "two", "three"), cli="", arguments=(), **keywords):
    """Runs the role for a plan that transfers leadership. Returns process, site and methods called.

    `cli` is the state of the package of the command line.
    """
    site = Site(tmp_path, list(hosts))
    site.dead.update(dead)
    for name in ("metalmesh", "dpkg-deb", "dpkg-query"):
        site.program(name)
    (tmp_path / "dpkg-query.output").write_text(cli)
    (tmp_path / "cli.deb").write_text("")
    (tmp_path / "metalmesh.output").write_text(json.dumps(PLAN))
    (tmp_path / "package.deb").write_text("")
    with Api({"ClusterService/Status": lambda _request: site.status(),
              "ClusterService/TransferLeader": {}}) as api:
        done = site.play(ROLE, {
            "control_admin_token": "token-of-this-test", "control_first_api_url": api.url,
            "control_health_timeout": 9, "upgrade_cli_program": "metalmesh",
            "upgrade_package_file": str(tmp_path / "package.deb"),
            "upgrade_cli_package_file": str(tmp_path / "cli.deb"),
            "upgrade_staging_dir": "{{ place }}/staging"}, arguments, **keywords)
    return done, site, [method.rsplit("/", 1)[-1] for method, _body in api.calls]


# Files of the role belong to root.
@pytest.mark.skipif(os.geteuid() != 0, reason="the role needs root")
@pytest.mark.parametrize("dead", [(), ("three",)])
def test_a_step_needs_every_voter(tmp_path, dead):
    done, site, methods = upgraded(tmp_path, dead)
    assert (done.returncode == 0) == (not dead), done.stdout
    assert ("TransferLeader" in methods) == (not dead)
    if dead:
        assert "control node 3 at three:4444 does not answer" in done.stdout
    # The command line follows the nodes.
    assert len(site.events("dpkg-query")) == (0 if dead else 3)
    asked = [line for line in site.events("metalmesh") if " plan " in line]
    access = str(tmp_path / "one" / "staging" / "access")
    assert len(asked) == 1 and "--config %s/config.yaml --context upgrade" % access in asked[0]
    # The token goes by a file, which is gone in the end whatever happened.
    assert not os.path.exists(access)
    assert "token-of-this-test" not in done.stdout + " ".join(site.events())


@pytest.mark.skipif(os.geteuid() != 0, reason="the role needs root")
def test_it_refuses_a_part_of_the_nodes(tmp_path):
    done, _site, methods = upgraded(tmp_path, serial=1)
    assert done.returncode != 0 and not methods
    assert "three, two of control_hosts failed or is not in this batch" in done.stdout


# In check mode: no test installs a package on this machine.
@pytest.mark.skipif(os.geteuid() != 0, reason="the role needs root")
@pytest.mark.parametrize("state", ["installed", "config-files"])
def test_the_command_line_is_upgraded_where_it_is(tmp_path, state):
    done, _site, _methods = upgraded(tmp_path, cli=state, arguments=["--check"])
    assert done.returncode == 0, done.stdout
    # Its file is what would come to each host.
    changed = done.stdout.count("changed=1 ")
    assert changed == (3 if state == "installed" else 0), done.stdout
