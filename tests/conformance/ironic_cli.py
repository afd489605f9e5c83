"""Runs the unchanged `baremetal` command line, one command after the other, in this process: a
start of the interpreter for each would take minutes.
"""

import contextlib
import importlib.metadata
import io
import json
import logging
import os
import shlex
import sys

from ironicclient import shell

from ironic_calls import IRONIC

# All commands of the client by their names, `node boot device show`, the longest first.
COMMANDS = sorted(
    (entry.name.removeprefix("baremetal_").replace("_", " ")
     for entry in importlib.metadata.entry_points(group="openstack.baremetal.v1")),
    key=len, reverse=True)


def by_token(token):
    """The environment of a caller with a token of metalmesh."""
    return {"OS_AUTH_TYPE": "admin_token", "OS_ENDPOINT": IRONIC, "OS_TOKEN": token}


@contextlib.contextmanager
def environment(variables):
    """Only these variables of OpenStack."""
    before = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("OS_")}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            os.environ.pop(name, None)
        os.environ.update(before)


class Cli:
    """The command line of one caller."""

    # Commands that were run by anybody.
    seen = set()
    # Number of runs.
    runs = 0

    def __init__(self, variables):
        self.variables = variables

    def run(self, line, options=()):
        """Exit code, standard output and standard error."""
        words = shlex.split(line)
        known = [name for name in COMMANDS if line.startswith(f"{name} ") or line == name]
        assert known, f"no command: {line}"
        Cli.seen.add(known[0])
        Cli.runs += 1
        argv = [*options, *words]
        out, err = io.StringIO(), io.StringIO()
        # Each application adds a handler to the root logger that writes to its own stream.
        logging.getLogger().handlers.clear()
        old, sys.argv = sys.argv, ["baremetal", *argv]
        try:
            with environment(self.variables), contextlib.redirect_stdout(out), \
                    contextlib.redirect_stderr(err):
                code = shell.App().run(argv)
        except SystemExit as ended:
            code = ended.code
        finally:
            sys.argv = old
        return code, out.getvalue(), err.getvalue()

    def ok(self, line):
        """A command that has to succeed; its output."""
        code, out, err = self.run(line)
        assert not code, f"baremetal {line}: {err}"
        return out

    def json(self, line):
        """The JSON of a command that shows something."""
        return json.loads(self.ok(f"{line} -f json"))

    def refused(self, line, why):
        """A command that has to be refused, for a reason with these words."""
        code, out, err = self.run(line, ["--max-retries", "0"])
        assert code, f"baremetal {line} is not refused: {out}"
        assert "HTTP 5" not in err and "Traceback" not in err, f"baremetal {line}: {err}"
        assert why.lower() in err.lower(), f"baremetal {line}: {why!r} expected: {err}"
        return err

    def either(self, line):
        """A command that may be refused, with a reason and not by a fault of the server."""
        code, _, err = self.run(line, ["--max-retries", "0"])
        assert "HTTP 5" not in err and "Traceback" not in err, f"baremetal {line}: {err}"
        return not code


def never_run():
    """The commands of the client that no script tried."""
    return sorted(set(COMMANDS) - Cli.seen)
