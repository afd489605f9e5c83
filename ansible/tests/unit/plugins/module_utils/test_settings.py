# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Options, environment and token files."""
from __future__ import annotations

import pytest

from ansible_collections.metalmesh.metalmesh.plugins.module_utils.settings import (
    SettingsError, resolve)

URL = "http://127.0.0.1:4443"


@pytest.mark.parametrize("options,environment,url,token", [
    ({"api_url": URL + "/"}, {}, URL, None),
    ({"api_url": URL, "api_token": "t"}, {"METALMESH_API_TOKEN": "e"}, URL, "t"),
    ({}, {"METALMESH_API_URL": URL, "METALMESH_API_TOKEN": "e"}, URL, "e"),
    ({}, {"METALCTLV2_API_URL": URL, "METALCTLV2_API_TOKEN": "e"}, URL, "e"),
    ({}, {"METALCTL_API_URL": "http://old", "METALMESH_API_URL": URL}, URL, None),
    ({"api_url": URL, "api_hmac": "h"}, {"METALCTL_APITOKEN": "e"}, URL, "e"),
])
def test_precedence(options, environment, url, token):
    settings = resolve(options, environment)
    assert (settings.url, settings.token) == (url, token)
    assert bool(settings.notices) == bool(options.get("api_hmac"))


def test_a_token_file_of_the_task_comes_before_a_token_of_the_environment(tmp_path):
    path = tmp_path / "token"
    path.write_text("f\n")
    options = {"api_url": URL, "api_token_file": str(path)}
    assert resolve(options, {"METALMESH_API_TOKEN": "e"}).token == "f"


@pytest.mark.parametrize("options,problem", [
    ({}, "no server is named"),
    ({"api_url": "mesh.example"}, "is no URL"),
    ({"api_url": URL, "api_token_file": "/nonexistent/token"}, "cannot read /nonexistent/token"),
    ({"api_url": URL, "api_hmac": "h"}, "v1 API"),
])
def test_refusals(options, problem):
    with pytest.raises(SettingsError, match=problem):
        resolve(options, {})
