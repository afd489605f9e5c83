# Copyright (c) 2026, the metalmesh authors
# SPDX-License-Identifier: Apache-2.0
"""Hosts that are directories, with a service manager and an API that only write down what they are told.

Roles run in them as they are, by `ansible-playbook`.
"""
from __future__ import annotations

import http.server
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

PLAYBOOK = pathlib.Path(sys.executable).parent / "ansible-playbook"
# What the service manager and other programs of a host do. The host is an environment variable.
PROGRAM = """#!%(python)s
import os, pathlib, sys, time
name, arguments = os.path.basename(sys.argv[0]), sys.argv[1:]
host, place = os.environ["FAKE_HOST"], pathlib.Path(os.environ["FAKE_PLACE"])
with open(place / "events", "a") as events:
    if "show" not in arguments:
        events.write(" ".join([host, name] + [one.replace("'", "") for one in arguments]) + "\\n")
if name == "runuser":
    print("sha256 0123abcd")
output = place / (name + ".output")
if output.exists():
    print(output.read_text())
start = place / host / "start"
if name == "systemctl" and arguments[0] in ("restart", "start") and not (place / host / "broken").exists():
    start.write_text(str(int(time.time())))
if name == "systemctl" and "show" in arguments:
    if "--timestamp=unix" in arguments:
        print("ExecMainStartTimestamp=" + ("@" + start.read_text() if start.exists() else ""))
    else:
        up = "active" if start.exists() else "inactive"
        seen = start.read_text() if start.exists() else ""
        print("LoadState=loaded\\nActiveState=%%s\\nInvocationID=%%s" %% (up, seen))
"""


class Site:
    """Control nodes, of which the first one leads."""

    def __init__(self, place, hosts):
        self.place = place
        self.hosts = hosts
        self.dead = set()
        self.behind = {}
        (place / "bin").mkdir()
        self.program("systemctl")
        self.program("runuser")
        for host in hosts:
            self._make_host(host)

    def program(self, name):
        """A program of all hosts."""
        path = self.place / "bin" / name
        path.write_text(PROGRAM % {"python": sys.executable})
        path.chmod(0o755)

    def _make_host(self, host):
        folder = self.place / host
        folder.mkdir()
        path = folder / "python"
        path.write_text("#!/bin/sh\nexport FAKE_HOST=%s FAKE_PLACE=%s\nPATH=%s:$PATH exec %s \"$@\"\n" % (
            host, self.place, self.place / "bin", sys.executable))
        path.chmod(0o755)

    def wrote(self, host, name, age):
        """A file of a host that was written so many seconds ago."""
        path = self.place / host / name
        path.write_text("")
        os.utime(path, (time.time() - age,) * 2)

    def started(self, host, age):
        """A host whose program was started so many seconds ago."""
        (self.place / host / "start").write_text(str(int(time.time() - age)))

    def breaks(self, host):
        """The program of a host does not come back from now on once it is restarted."""
        (self.place / host / "broken").write_text("")

    def events(self, *wanted):
        """What hosts were told, in order: lines that have one of some words."""
        path = self.place / "events"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if not wanted or any(word in line.split() for word in wanted)]

    def status(self):
        """The cluster. A node is heard unless it is dead, or was restarted and is broken."""
        told = {line.split()[0] for line in self.events("restart")}
        nodes = []
        for number, host in enumerate(self.hosts, start=1):
            gone = host in self.dead or host in told and (self.place / host / "broken").exists()
            heard = time.time() - (3600 if gone else 0)
            nodes.append({
                "id": str(number), "role": "NODE_ROLE_" + ("VOTER" if number > 1 else "LEADER"),
                "peerAddress": host + ":4444", "behind": str(self.behind.get(host, 0)),
                "heardAt": stamp(heard)})
        return {"leader": "1", "term": "1", "answeredBy": "1", "nodes": nodes}

    def play(self, tasks, variables=None, arguments=(), **keywords):
        """Runs tasks on all hosts and returns the finished process, with its output on one line."""
        inventory = {"control": {"hosts": {host: {
            "ansible_connection": "local", "ansible_host": host,
            "ansible_python_interpreter": str(self.place / host / "python"),
            "place": str(self.place / host)} for host in self.hosts}}}
        play = dict({"hosts": "control", "gather_facts": False, "vars": variables or {}, "tasks": tasks},
                    **keywords)
        (self.place / "hosts.yml").write_text(json.dumps(inventory))
        (self.place / "play.yml").write_text(json.dumps([play]))
        # A directory of its own: other tests and the user have theirs.
        environment = dict(os.environ, ANSIBLE_HOME=str(self.place / "home"), ANSIBLE_NOCOLOR="1",
                           ANSIBLE_LOCALHOST_WARNING="false", ANSIBLE_DEPRECATION_WARNINGS="false")
        for name in list(environment):
            if name.startswith("METAL"):
                del environment[name]
        done = subprocess.run(
            [str(PLAYBOOK), "-vv", "--diff", "-i", "hosts.yml", "play.yml", *arguments], cwd=self.place,
            env=environment, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=600)
        # Long messages are broken at any place.
        done.stdout = " ".join(done.stdout.split())
        return done


def stamp(seconds):
    """Seconds since 1970 as the API writes a time."""
    return "%s.%03dZ" % (time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)), seconds % 1 * 1000)


class Api:
    """An API that answers by the last part of a method's name."""

    def __init__(self, answers):
        self.answers = answers
        self.calls = []
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
                method = "/".join(self.path.rsplit(".", 1)[-1].split("/")[-2:])
                api.calls.append((method, body))
                answer = api.answers[method]
                answer = answer(body) if callable(answer) else answer
                text = json.dumps(answer).encode("utf-8")
                self.send_response(404 if "code" in answer else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *arguments):
                """Says nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_port
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_reason):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
