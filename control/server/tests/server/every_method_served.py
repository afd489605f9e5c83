"""Has every method of the published contract do its work through the published client, in each
combination of protocol and codec: an operator's site, a tenant's project, a machine's life, and the
end of all of it. Each call is answered, none is refused; what it does shows in the calls after it.

Each combination works on things of its own. Methods that need what this node has not got are
named in ELSEWHERE.
Usage: ADMIN_TOKEN=... every_method_served.py http://127.0.0.1:PORT
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

from caller import CONTRACT, Caller
from contract import COMBINATIONS
from world import Site

# They ask a headscale, which has a test of its own (vpn.rs).
ELSEWHERE = {"admin.VPNService/AuthKey", "admin.VPNService/ListNodes"}


def serve(number, label, options):
    """Has every method served in one combination; how many were."""
    served = set()
    admin = Caller(sys.argv[1], options, os.environ["ADMIN_TOKEN"], served)
    Site(label.lower().replace("_", "").replace(" ", ""), number, admin).live()
    missing = set(CONTRACT) - served - ELSEWHERE
    assert not missing, sorted(missing)
    print(f"{label}: {len(served)} of {len(CONTRACT)} methods served", flush=True)
    return len(served)


def main():
    # All at once: most of a machine's life is waiting.
    with ThreadPoolExecutor(len(COMBINATIONS)) as pool:
        lives = [pool.submit(serve, number, label, options)
                 for number, (label, options) in enumerate(COMBINATIONS, start=1)]
        served = [life.result() for life in lives]
    print(f"{len(CONTRACT)} methods, {len(served)} combinations, "
          f"{min(served)} methods served in each")


main()
