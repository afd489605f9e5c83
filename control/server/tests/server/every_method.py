"""Calls every method of the published contract through the published client, in each combination
of protocol and codec, and compares the answers.

Each method is called three times: without a token, with one that may do everything, and by a
stranger's. What a request asks for by name is filled in where the name says what it is; methods
that take more than that refuse the request, and have to refuse it alike in every combination.
Usage: ADMIN_TOKEN=... every_method.py http://127.0.0.1:PORT
"""

import os
import sys

from connectrpc.code import Code
from connectrpc.errors import ConnectError
from google.protobuf import message_factory

import metalstack.admin.v2.tenant_connect as admin_tenant
import metalstack.admin.v2.tenant_pb2 as admin_tenant_pb
import metalstack.admin.v2.token_connect as admin_token
import metalstack.admin.v2.token_pb2 as admin_token_pb
import metalstack.api.v2.common_pb2 as common_pb
import metalstack.api.v2.project_connect as project
import metalstack.api.v2.project_pb2 as project_pb
import metalstack.api.v2.token_pb2 as token_pb
from contract import COMBINATIONS, http, methods

URL = sys.argv[1]
ADMIN = os.environ["ADMIN_TOKEN"]
METHODS = 152
# How long a stream may say nothing, and an answer may take, milliseconds.
STREAM_MS, ANSWER_MS = 700, 20_000
# Answers that no request may get: the method is missing, or the server was wrong.
NEVER = {Code.UNIMPLEMENTED, Code.INTERNAL, Code.UNKNOWN, Code.DATA_LOSS, Code.UNAVAILABLE}


def request(method, known):
    """Asks for what is there, as far as names tell."""
    made = message_factory.GetMessageClass(method.input_type)()
    for field in method.input_type.fields:
        if field.name in known and field.type == field.TYPE_STRING and not field.is_repeated:
            setattr(made, field.name, known[field.name])
    return made


def answer(client, name, method, asked, options, secret):
    """The code of the answer; of a stream that of its beginning."""
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    call = getattr(client(URL, **options), name)
    timeout = STREAM_MS if method.server_streaming else ANSWER_MS
    try:
        got = call(asked, headers=headers, timeout_ms=timeout)
        if method.server_streaming:
            next(iter(got), None)
        return "OK"
    except ConnectError as error:
        quiet = method.server_streaming and error.code == Code.DEADLINE_EXCEEDED
        return "OK" if quiet else error.code


def prepared():
    """A tenant's project, and a stranger's token."""
    options = {"http_client": http}
    headers = {"Authorization": f"Bearer {ADMIN}"}
    tenants = admin_tenant.TenantServiceClientSync(URL, **options)
    for login in ("acme", "stranger"):
        tenants.create(admin_tenant_pb.TenantServiceCreateRequest(name=login), headers=headers)
    made = project.ProjectServiceClientSync(URL, **options).create(
        project_pb.ProjectServiceCreateRequest(login="acme", name="web", description="Python's"),
        headers=headers)
    wanted = token_pb.TokenServiceCreateRequest(
        project_roles={"*": common_pb.PROJECT_ROLE_OWNER},
        tenant_roles={"*": common_pb.TENANT_ROLE_OWNER})
    wanted.expires.seconds = 3600
    stranger = admin_token.TokenServiceClientSync(URL, **options).create(
        admin_token_pb.TokenServiceCreateRequest(user="stranger", token_create_request=wanted),
        headers=headers)
    return {"project": made.project.uuid, "login": "acme", "tenant": "acme"}, stranger.secret


def is_harmless(method):
    """Whether calling it again gives the same answer."""
    return method.name.startswith(("Get", "List", "Latest", "Match", "Try", "Issues", "Capacity"))


def main():
    known, stranger = prepared()
    count, reached, wrong = 0, 0, []
    for client, name, method in methods():
        count += 1
        asked = request(method, known if is_harmless(method) else {})
        for who, secret in (("nobody", None), ("stranger", stranger), ("admin", ADMIN)):
            codes = {label: answer(client, name, method, asked, options, secret)
                     for label, options in COMBINATIONS}
            kinds = set(codes.values())
            if len(kinds) != 1 or kinds & NEVER:
                wrong.append(f"{method.full_name} by {who}: {codes}")
            reached += kinds == {"OK"} and who == "admin"
    for line in wrong:
        print(line)
    print(f"{count} methods, {len(COMBINATIONS)} combinations, {reached} answered to the admin")
    assert count == METHODS, f"{count} methods, {METHODS} expected"
    return 1 if wrong else 0


sys.exit(main())
