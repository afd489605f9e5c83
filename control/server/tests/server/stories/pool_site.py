"""A site with a pool of hosts, for the stories of HostClaim. Its callers use the command line and
the API of projects; its machines are simulated by the calls of the published stack.
"""

import json
import os
import shlex
import subprocess
import tempfile
import uuid

from ironic_calls import ADMIN, API, Api, Refused, wait_until
from ironic_world import Machine, World

PROGRAM = os.environ["METALMESH"]
POOL = "shared"
EVERYBODY = "[{name: everybody, allowAll: true}]"
CLAIMS, POOLS = "metalmesh.tenant.v1.ClaimService", "metalmesh.admin.v1.PoolService"


class Shell:
    """The command line of one caller, who has a file with a token, and perhaps a project."""

    def __init__(self, token_file, project=None):
        self.variables = {**os.environ, "METALMESH_API_URL": API,
                          "METALMESH_TOKEN_FILE": token_file,
                          "METALMESH_CONFIG": f"{token_file}.no-contexts"}
        self.options = ["--project", project] if project else []

    def run(self, line, text=""):
        words = [PROGRAM, *shlex.split(line), *self.options]
        return subprocess.run(words, env=self.variables, input=text, capture_output=True, text=True)

    def ok(self, line, text=""):
        """The output of a command that has to succeed. `text` is its standard input."""
        done = self.run(line, text)
        assert done.returncode == 0, f"metalmesh {line}: {done.stderr}"
        return done.stdout

    def json(self, line, text=""):
        return json.loads(self.ok(f"{line} -o json", text))

    def refused(self, line, why, text=""):
        """A command that has to be refused, for a reason with these words."""
        done = self.run(line, text)
        assert done.returncode, f"metalmesh {line} is not refused: {done.stdout}"
        assert why in done.stderr, f"metalmesh {line}: {why!r} expected: {done.stderr}"
        return done.stderr


class User:
    """A project with its owner, by the command line and by the API of projects."""

    def __init__(self, site, name):
        project = site.world.projects[name]
        self.id, self.network = project.id, project.network
        path = os.path.join(site.folder, name)
        rights = f"--user {name} --project-role {self.id}=owner"
        site.operator.ok(f"token create {rights} --out {path}")
        self.shell = Shell(path, self.id)
        with open(path) as file:
            self.api = Api(file.read().strip())

    def call(self, method, **fields):
        return self.api(f"{CLAIMS}/{method}", project=self.id, **fields)

    def create(self, name, spec):
        """A claim by the file of its intent."""
        return self.shell.json(f"claim create {name} -f -", spec)

    def update(self, name, spec, more=""):
        return self.shell.json(f"claim update {name} -f - {more}", spec)

    def claim(self, name):
        return self.shell.json(f"claim show {name}")

    def status(self, name):
        return self.claim(name)["status"]

    def becomes(self, name, state):
        """The status of a claim, once it is in a state."""
        def found():
            status = self.status(name)
            return status if status["state"] == state else None
        return wait_until(found, f"claim {name} is {state}")

    def installed(self, name):
        """Waits until the system of a claim runs as the claim wants it."""
        wait_until(lambda: condition(self.status(name), "Ready")["status"], f"{name} is ready")

    def hears(self, code, method, **fields):
        """A call of the API that has to be refused with this code."""
        try:
            self.call(method, **fields)
        except Refused as refused:
            assert refused.code == code, refused
            return str(refused)
        raise AssertionError(f"{method} {fields} is not refused")


class PoolSite:
    """The site, its operator, and the users of its projects."""

    def __init__(self, *projects):
        self.world = World(*projects)
        # Removed with the object, which the end of the script does.
        self.directory = tempfile.TemporaryDirectory()
        self.folder = self.directory.name
        path = os.path.join(self.folder, "operator")
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write(ADMIN)
        self.operator = Shell(path)
        self.users = {name: User(self, name) for name in projects}

    def pool(self, policies=EVERYBODY, name=POOL, more=""):
        """A pool that shows projects the labels `infra-*` of its hosts."""
        text = f"id: {name}\npolicies: {policies}\npublishedLabels: ['infra-*']\n{more}"
        return self.operator.json("pool set -f -", text)

    def machine(self, number):
        """A machine that booted its hammer, which waits."""
        made = Machine(self.world, f"host-{number}", number, str(uuid.uuid4()), ())
        self.world.machines[made.id] = made
        made.boot()
        return made

    def host(self, number, labels, pool=POOL):
        """A machine that is a host of a pool, on offer."""
        made = self.machine(number)
        flags = " ".join(f"--label {label}" for label in labels)
        self.operator.ok(f"pool host set {made.id} --pool {pool} {flags}")
        self.is_in_state(made, "free", "bound")
        return made

    def host_of(self, machine):
        """A machine as a host, as the operator sees it."""
        rows = self.operator.json("pool host ls")
        (row,) = [row for row in rows if row["machine"] == machine.id]
        return row

    def is_in_state(self, machine, *states):
        wait_until(lambda: self.host_of(machine)["state"] in states,
                   f"host {machine.name} is {' or '.join(states)}")

    def machine_of(self, claim):
        """The machine that a claim has, as the operator sees it."""
        rows = self.operator.json("pool claims")
        (row,) = [row for row in rows if row["claim"]["uuid"] == claim["uuid"]]
        return self.world.machines[row["machine"]] if row.get("machine") else None


def condition(status, kind):
    (found,) = [one for one in status["conditions"] if one["type"] == kind]
    return {"status": False, **found}
