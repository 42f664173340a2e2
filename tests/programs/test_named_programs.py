"""Programs that once showed a defect."""

from __future__ import annotations

import pytest

from tests.programs.life import Servers
from tests.programs.named import NAMED
from tests.programs.whole import run_program

pytestmark = [pytest.mark.jvm, pytest.mark.server]

NIGHTLY = {
    "a copy and its history with two answers about one column",
    "a publication without deletes between two runs",
    "a publication without deletes between two runs, and another setting of it",
    "a column is shown in the YAML and masked again",
    "a record waits while a column is renamed",
    "a record waits while another column gets the name of one",
    "a record waits while another column gets the name of one, without ids of columns",
    "a table is renamed whose first copy is paused and of a former table",
    "a history of a column with a wider type, in a target that may follow it later",
    "a lost target that is copied again has no column that is withheld",
    "a bad value stops the copy into a target that is added later",
    "a clock goes back between two batches of a history",
    "a history of a feed is copied again after a column was added",
    "a history of a column that the YAML casts for some time",
    "the position is lost while the only table is paused",
    "a history of a feed that ignores deletes is copied again",
    "a new column with the former name of a renamed one",
    "a record of a history waits through a truncate",
    "a record waits while its column is dropped in the target, and another one gets its name",
    "a record of a log waits while a column that was added is renamed",
    "a column is renamed while a target is added",
    "a record is decided where all targets have names",
    "a history is given up while deleted rows are kept",
    "a new column of a history has the name of a former one",
    "two targets of MariaDB with two answers",
    "an answer about a new table is none about the next one of its name",
    "a run of a replicator without copies is not its first one",
    "the key audit of a history that copies left rows out of",
    "a table that was dropped and made again, with a history",
    "a poll has no TRUNCATE that could be ignored",
    "a target is added while the position is lost",
    "an answer resync is refused, and the table goes on without the ignored column",
}
"""Slow ones, whose defect another program or a test of the decision is close to."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.nightly] * (name in NIGHTLY)) for name in NAMED]
)
def test_a_program_that_once_showed_a_defect_shows_none(servers: Servers, name: str) -> None:
    run_program(NAMED[name], servers)


def test_nightly_programs_are_named() -> None:
    assert NAMED.keys() > NIGHTLY
