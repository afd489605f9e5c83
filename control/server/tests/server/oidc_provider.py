"""A provider of logins: oidc-provider-mock over TLS, and PKCE as RFC 7636 wants it.

Arguments: certificate, key, and each user's claims as JSON. Prints its address once it listens.
"""

import base64
import hashlib
import io
import json
import os
import socket
import sys
from urllib.parse import parse_qs, urlsplit

import oidc_provider_mock
import uvicorn
from oidc_provider_mock._storage import User


class WithPkce:
    """Refuses logins without a challenge, and codes without the verifier that belongs to it."""

    def __init__(self, app):
        self.app = app
        self.challenges = {}

    def __call__(self, environ, start_response):
        query = parse_qs(environ.get("QUERY_STRING", ""))
        path = environ["PATH_INFO"]
        challenge = query.get("code_challenge", [""])[0]
        if path == "/oauth2/authorize":
            if not challenge or query.get("code_challenge_method") != ["S256"]:
                return refuse(start_response, "no challenge")

            def remember(status, headers, *rest):
                to = dict(headers).get("Location", "")
                for code in parse_qs(urlsplit(to).query).get("code", []):
                    self.challenges[code] = challenge
                return start_response(status, headers, *rest)

            return self.app(environ, remember)
        if path == "/oauth2/token":
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            environ["wsgi.input"] = io.BytesIO(body)
            form = parse_qs(body.decode())
            verifier = form.get("code_verifier", [""])[0].encode()
            hashed = base64.urlsafe_b64encode(hashlib.sha256(verifier).digest())
            wanted = self.challenges.pop(form.get("code", [""])[0], None)
            if wanted != hashed.rstrip(b"=").decode():
                return refuse(start_response, "the verifier is another one")
            if not environ.get("HTTP_AUTHORIZATION", "").startswith("Basic "):
                return refuse(start_response, "no client secret")
        return self.app(environ, start_response)


def refuse(start_response, why):
    start_response("400 Bad Request", [("Content-Type", "application/json")])
    return [json.dumps({"error": why}).encode()]


def main():
    certificate, key, *users = sys.argv[1:]
    claims = [json.loads(user) for user in users]
    os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"
    app = oidc_provider_mock.app(
        require_nonce=True,
        user_claims=[User(sub=it.pop("sub"), claims=it) for it in claims],
    )
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"https://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(
        WithPkce(app), interface="wsgi", ssl_certfile=certificate, ssl_keyfile=key
    )
    uvicorn.Server(config).run(sockets=[listener])


main()
