"""A whole program: on a real source, by real runs, into real targets."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from tests.programs import events, writers
from tests.programs import program as acts
from tests.programs.carrying_out import take_part
from tests.programs.healing import heal
from tests.programs.life import Life, Servers
from tests.programs.program import Program, Setup
from tests.programs.worlds.feeds import DebeziumWorld, YdbWorld
from tests.programs.worlds.mariadb import MariaDBWorld
from tests.programs.worlds.polled import PolledWorld
from tests.programs.worlds.postgres import PostgresWorld
from tests.programs.worlds.world import World

__all__ = ["events", "run_program", "writers"]


def run_program(program: Program, servers: Servers) -> None:
    """Raises Finding."""
    with tempfile.TemporaryDirectory(prefix="cdc-program-") as folder, contextlib.ExitStack() as stack:
        os.chmod(folder, 0o755)
        world = _world(program.setup, servers, Path(folder))
        stack.callback(world.close)
        life = Life(Path(folder), servers, program.setup, world, stack)
        for act in (*program.acts, acts.Settle()):
            take_part(act, life)
        heal(life)


def _world(setup: Setup, servers: Servers, folder: Path) -> World:
    match setup.source:
        case acts.MARIADB:
            return MariaDBWorld(servers.mariadb, setup.reconcile)
        case acts.POLL:
            return PolledWorld(servers.postgres, setup.reconcile, setup.zone)
        case acts.DEBEZIUM:
            return DebeziumWorld(folder, setup.statements)
        case acts.YDB:
            return YdbWorld(folder)
    return PostgresWorld(servers.postgres, setup.reconcile)
