# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""The server and the credentials of a connection: options, environment, token file."""
from __future__ import annotations

import os
from typing import NamedTuple, Optional

# Environment variables by option, in their order of precedence: ours, those of the published
# clients of the v2 API, those of the published modules.
ENVIRONMENT = {
    "api_url": ("METALMESH_API_URL", "METAL_APIV2_URL", "METALCTLV2_API_URL",
                "METALCTL_API_URL"),
    "api_token": ("METALMESH_API_TOKEN", "METAL_APIV2_TOKEN", "METALCTLV2_API_TOKEN",
                  "METALCTL_APITOKEN"),
    "api_token_file": ("METALMESH_TOKEN_FILE", "METAL_APIV2_TOKEN_FILE"),
}
TIMEOUT = 30

CONNECTION_OPTIONS = {
    "api_url": {"type": "str"},
    "api_token": {"type": "str", "no_log": True},
    "api_token_file": {"type": "path", "no_log": False},
    "api_timeout": {"type": "int", "default": TIMEOUT},
    "validate_certs": {"type": "bool", "default": True},
    "ca_path": {"type": "path"},
    "api_hmac": {"type": "str", "no_log": True},
    "api_hmac_user": {"type": "str"},
}

NO_HMAC = ("api_hmac is a key of metal-stack's v1 API, which this collection does not speak; give "
           "a token of the v2 API instead: api_token, api_token_file or METALMESH_API_TOKEN")


class SettingsError(Exception):
    """The options name no server, or a token that cannot be read."""


class Settings(NamedTuple):
    """A server and how it is called."""

    url: str
    token: Optional[str] = None
    timeout: int = TIMEOUT
    validate_certs: bool = True
    ca_path: Optional[str] = None
    notices: tuple = ()


def resolve(options, environment=None):
    """Merges options and environment, which is that of the process unless another one is given; an option
    takes precedence over every variable."""
    environment = os.environ if environment is None else environment

    def given(option):
        value = options.get(option)
        if value:
            return value
        names = ENVIRONMENT.get(option, ())
        return next((environment[name] for name in names if environment.get(name)), None)

    url = given("api_url")
    if not url:
        raise SettingsError("no server is named; give api_url or set METALMESH_API_URL")
    if not url.startswith(("http://", "https://")):
        raise SettingsError("api_url: %s is no URL; write http://HOST:PORT or https://HOST" % url)
    token = _token(options, given)
    hmac = bool(options.get("api_hmac"))
    if hmac and not token:
        raise SettingsError(NO_HMAC)
    return Settings(
        url=url.rstrip("/"), token=token, timeout=options.get("api_timeout") or TIMEOUT,
        validate_certs=options.get("validate_certs") is not False,
        ca_path=options.get("ca_path"), notices=(NO_HMAC,) if hmac else ())


def _token(options, given):
    # A file that is named as an option is not overruled by a token in the environment.
    if options.get("api_token_file") and not options.get("api_token"):
        return read_token(options["api_token_file"])
    token = given("api_token")
    if token:
        return token.strip()
    path = given("api_token_file")
    return read_token(path) if path else None


def read_token(path):
    """The token in a file, which has one line."""
    try:
        with open(os.path.expanduser(path), encoding="utf-8") as file:
            token = file.read(65536).strip()
    except OSError as error:
        raise SettingsError("api_token_file: cannot read %s: %s" % (path, error.strerror)) from error
    if not token:
        raise SettingsError("api_token_file: %s is empty" % path)
    return token
