"""Makes each call of refusal_rows.py through the published client and compares its code; what is
refused changes nothing.

Usage: ADMIN_TOKEN=... refusals.py http://127.0.0.1:PORT
"""

import os
import sys
from collections import Counter

from connectrpc.errors import ConnectError

from caller import Caller
from contract import COMBINATIONS
from estate import Estate
from refusal_rows import OK, rows
from things import as_dict


def code_of(who, key, fields):
    try:
        who(key, **fields)
        return OK, ""
    except ConnectError as error:
        return error.code, error.message


def state(site):
    """The objects that a refused call might have changed."""
    admin = site.admin
    found = [as_dict(admin(f"admin.{kind}Service/List"))
             for kind in ("Network", "IP", "Tenant", "Project", "Token", "Switch")]
    machines = admin("admin.MachineService/List").machines
    return found, [(one.uuid, one.allocation.uuid, one.status.condition.state)
                   for one in machines]


def main():
    options = COMBINATIONS[0][1]
    site = Estate("shop", 1, Caller(sys.argv[1], options, os.environ["ADMIN_TOKEN"], set()))
    site.build()
    counted, parts, wrong = Counter(), Counter(), []
    for part, what, who, key, fields, expected in rows(site):
        before = state(site)
        code, message = code_of(who, key, fields)
        counted["rows"] += 1
        if code != expected:
            wrong.append(f"{part}: {what}: {key} {fields}: {code} {message}, not {expected}")
        if expected == OK:
            counted["calls accepted"] += 1
        else:
            counted["calls refused"] += 1
            if state(site) != before and code != OK:
                wrong.append(f"{part}: {what}: it was refused and changed something")
        parts[part] += 1
    for part, count in parts.items():
        print(f"{part}: {count} rows")
    for line in wrong:
        print(line)
    print(", ".join(f"{count} {name}" for name, count in counted.items()))
    sys.exit(1 if wrong else 0)


main()
