"""The ways in which clients authenticate, with and without Keystone's calls: each caller gets the
nodes of its scope, and nobody else's. Usage: METALMESH_API=... IRONIC_URL=... ADMIN_TOKEN=...
ironic_identity.py
"""

import uuid

from ironic_calls import IRONIC, Ironic, wait_until
from ironic_cli import Cli, by_token
from ironic_world import PARTITION, World, token

AUTH = {"OS_AUTH_URL": f"{IRONIC}/v3", "OS_REGION_NAME": "RegionOne"}


def nodes(variables):
    """The names of the nodes that a caller sees."""
    return {row["name"] for row in Cli(variables).json("node list")}


def refused(variables, why):
    code, out, err = Cli(variables).run("node list", ["--max-retries", "0"])
    assert code and why in err, f"{why!r} expected: {out}{err}"


def password(name, secret, **scope):
    if "OS_PROJECT_NAME" in scope:
        scope["OS_PROJECT_DOMAIN_NAME"] = "Default"
    return {**AUTH, "OS_AUTH_TYPE": "password", "OS_USER_DOMAIN_NAME": "Default",
            "OS_USERNAME": name, "OS_PASSWORD": secret, **scope}


def credential(ident, secret):
    return {**AUTH, "OS_AUTH_TYPE": "v3applicationcredential",
            "OS_APPLICATION_CREDENTIAL_ID": ident, "OS_APPLICATION_CREDENTIAL_SECRET": secret}


def ways(world):
    """Each way with a right credential: for a project and for the site."""
    alpha, site = world.projects["alpha"], world.tokens["reader"]
    member = alpha.tokens["member"]
    user = token_of(world.tokens["reader"])["user"]["name"]
    basic = {"OS_AUTH_TYPE": "http_basic", "OS_ENDPOINT": IRONIC}
    of_alpha = [
        by_token(member),
        by_token(f"{alpha.id}:{member}"),
        by_token(f"{alpha.id.replace('-', '')}:{member}"),
        {**basic, "OS_USERNAME": alpha.id, "OS_PASSWORD": member},
        password("alpha", member, OS_PROJECT_ID=alpha.id),
        password("alpha", member, OS_PROJECT_NAME="alpha"),
        password("alpha", member),
        credential(alpha.id, member),
        {**AUTH, "OS_AUTH_TYPE": "v3token", "OS_TOKEN": member, "OS_PROJECT_ID": alpha.id},
    ]
    for variables in of_alpha:
        assert nodes(variables) == {"alpha-node"}, variables["OS_AUTH_TYPE"]
    of_site = [
        by_token(site),
        by_token(f"system:{site}"),
        {**basic, "OS_USERNAME": "system", "OS_PASSWORD": site},
        password(user, site, OS_SYSTEM_SCOPE="all"),
    ]
    for variables in of_site:
        assert nodes(variables) == {"alpha-node", "beta-node", "site-node"}, variables
    return len(of_alpha) + len(of_site)


def wrong_ways(world):
    """Credentials and scopes that are refused."""
    alpha, beta = world.projects["alpha"], world.projects["beta"]
    member = alpha.tokens["member"]
    forged = member[:-2] + ("AA" if member[-2:] != "AA" else "BB")
    agent = token(world.admin, "metal-stack", {"metalmesh.dev/partition": PARTITION},
                  infraRole="INFRA_ROLE_EDITOR")
    cases = [
        ({"OS_AUTH_TYPE": "none", "OS_ENDPOINT": IRONIC}, "401"),
        (by_token("nonsense"), "401"),
        (by_token(forged), "401"),
        (by_token(f"{beta.id}:{member}"), "403"),
        (by_token(f"system:{member}"), "403"),
        (by_token(agent), "403"),
        ({"OS_AUTH_TYPE": "http_basic", "OS_ENDPOINT": IRONIC, "OS_USERNAME": "alpha",
          "OS_PASSWORD": member}, "401"),
        (password("beta", member, OS_PROJECT_ID=alpha.id), "401"),
        (password("alpha", "nonsense", OS_PROJECT_ID=alpha.id), "401"),
        (password("alpha", member, OS_PROJECT_ID=beta.id), "403"),
        (password("alpha", member, OS_PROJECT_NAME="beta"), "403"),
        (password("alpha", member, OS_SYSTEM_SCOPE="all"), "403"),
        (credential(beta.id, member), "401"),
        (credential(str(uuid.uuid4()), member), "401"),
    ]
    for variables, why in cases:
        refused(variables, why)
    return len(cases)


def token_of(secret, **scope):
    """The token that Keystone's calls issue for a token of metalmesh."""
    answer = issue({"methods": ["token"], "token": {"id": secret}}, scope or None)
    assert answer.status == 201, answer
    return answer.json["token"]


def issue(identity, scope=None):
    body = {"auth": {"identity": identity, **({"scope": scope} if scope else {})}}
    return Ironic(None).post("/v3/auth/tokens", body)


def validation(world):
    """A service, such as a real Ironic, checks the token of a caller."""
    alpha = world.projects["alpha"]
    issued = issue({"methods": ["token"], "token": {"id": alpha.tokens["member"]}})
    subject = issued.headers["X-Subject-Token"]
    service = Ironic(world.tokens["reader"])
    path, head = "/v3/auth/tokens", {"X-Subject-Token": subject}
    found = service.get(path, headers=head)
    assert found.status == 200 and found.headers["X-Subject-Token"] == subject, found
    shown = found.json["token"]
    assert shown["project"]["id"] == alpha.id and shown["user"]["name"] == "alpha", shown
    assert [role["name"] for role in shown["roles"]] == ["member", "reader"], shown
    assert {service["type"] for service in shown["catalog"]} == {
        "baremetal", "identity", "network"}, shown
    assert service.get(path, headers={"X-Subject-Token": "nonsense"}).status == 404
    assert Ironic(None).get(path, headers=head).status == 401
    assert service.get(path).status == 404
    kept = service.delete(path, headers=head)
    assert kept.status == 403 and "metalmesh token revoke" in kept.reason, kept
    assert Ironic(subject).get("/v1/nodes").status == 200
    assert Ironic(None).get("/v3").json["version"]["id"].startswith("v3")
    for verb, at in (("GET", "/v3/users"), ("POST", "/v3/auth"), ("GET", "/v3/auth/tokens/x")):
        assert Ironic(None).ask(verb, at).status == 404, at
    assert Ironic(None).put(path, {}).status == 405
    return subject, shown


def revocation(world, subject, shown):
    """A token that was revoked ends at once, whatever was made of it."""
    alpha = world.projects["alpha"]
    ident = shown["audit_ids"][0]
    world.admin("admin.TokenService/Revoke", uuid=ident, user="alpha")
    wait_until(lambda: Ironic(subject).get("/v1/nodes").status == 401, "the token is revoked")
    assert Ironic(alpha.tokens["member"]).get("/v1/nodes").status == 401
    gone = Ironic(world.tokens["reader"]).get(
        "/v3/auth/tokens", headers={"X-Subject-Token": subject})
    assert gone.status == 404, gone


def main():
    world = World("alpha", "beta")
    for name in ("alpha", "beta", "site"):
        body = {"driver": "metalmesh", "name": f"{name}-node"}
        if name in world.projects:
            body["owner"] = world.projects[name].id
        world.site.ok("POST", "/v1/nodes", body)
    right, wrong = ways(world), wrong_ways(world)
    subject, shown = validation(world)
    revocation(world, subject, shown)
    print(f"{right} ways in, {wrong} ways refused")


main()
