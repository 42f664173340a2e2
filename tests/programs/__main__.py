"""Carries out random programs and prints what they show, shortened. ``make programs N=3000 SEED=7``

Every program is real: a real source, real runs, real targets. Two processes share the programs.
``FEATURES="questions several"``: programs in which these features meet.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import logging
import subprocess
import sys
import time
from itertools import count

from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.mariadb import embedded
from tests.model import seeds
from tests.programs.explore import EACH, explore
from tests.programs.life import Servers
from tests.spark.conftest import new_session

PROCESSES = 2


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.programs", description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=300)
    parser.add_argument("--part", type=int)
    parser.add_argument("--as-drawn", action="store_true", help="findings are not shortened")
    arguments = parser.parse_args()
    if arguments.part is not None:
        return _part(arguments.count, arguments.part, not arguments.as_drawn)
    print(f"again: make programs N={arguments.count} SEED={seeds.seed()}", flush=True)
    command = [sys.executable, "-m", "tests.programs", str(arguments.count), *sys.argv[2:]]
    running = [subprocess.Popen([*command, "--part", str(part)]) for part in range(PROCESSES)]
    return max(process.wait() for process in running)


def _part(programs: int, part: int, shorten: bool) -> int:
    logging.getLogger("pyiceberg").setLevel(logging.WARNING)
    known: set[str] = set()
    found, began_s = count(), time.monotonic()
    session = new_session()
    gc.freeze()  # what was imported stays: the garbage collector does not look at it again
    with EmbeddedPostgres() as postgres, embedded() as mariadb:
        servers = Servers(postgres, mariadb, session)
        for number in range(part, programs // EACH, PROCESSES):
            with contextlib.redirect_stdout(io.StringIO()):
                shown = list(explore(f"{seeds.seed()} {number}", servers, known, shorten))
            for one in shown:
                print(f"\n{next(found) + 1}. {one}", flush=True)
            print(f"{(number + 1) * EACH} programs, {time.monotonic() - began_s:.0f} s", file=sys.stderr, flush=True)
    session.stop()
    return int(bool(known))


if __name__ == "__main__":
    sys.exit(main())
