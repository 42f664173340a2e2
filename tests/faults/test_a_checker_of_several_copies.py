"""The checker distinguishes the copies of one source table, and the copies in one target table."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.checker.checker import Checker
from tests.faults.checker.commits import SHARD
from tests.faults.corruptions import Rows, forge
from tests.faults.runner import FaultRunner, run_until_caught_up
from tests.faults.system import SystemUnderTest
from tests.faults.targets import PostgresTarget
from tests.faults.writer import ACCOUNTS, BRANCHES

pytestmark = [pytest.mark.jvm, pytest.mark.server]


@pytest.fixture
def system(runner: FaultRunner, request: pytest.FixtureRequest) -> Iterator[SystemUnderTest]:
    """Up to date and without findings; the writer is stopped. ``request.param``: the target."""
    made = runner.system_for(request.param, fresh=True)
    made.writer.step(10)
    assert run_until_caught_up(made) == []
    with made.writer.still():
        assert [*made.checker.check(), *made.checker.check_at_rest()] == []
        yield made
    runner.leave()


@pytest.mark.parametrize("system", ["shards in delta"], indirect=True)
@pytest.mark.parametrize("own", [True, False])
def test_a_commit_without_a_row_of_its_own_or_of_another_copy_in_its_table_is_found(
    system: SystemUnderTest, own: bool
) -> None:
    committed = last_committed(system.checker)

    def without_one(rows: Rows) -> Rows:
        lost = next(row for row in rows if (row[SHARD] == committed) is own)
        return [row for row in rows if row is not lost]

    forge(system.checker, "accounts", without_one)
    (finding,) = system.checker.check()
    assert finding.invariant == ("commit equals the source" if own else "a commit changes its own copy only")
    assert (finding.table == committed) is own


@pytest.mark.parametrize("system", ["delta and postgres"], indirect=True)
def test_a_row_that_is_lost_in_one_of_two_targets_is_found_there(system: SystemUnderTest) -> None:
    assert isinstance(system.target, PostgresTarget)
    copy = f"{system.target.schema}.{ACCOUNTS.target}"
    system.target.execute(f"DELETE FROM {copy} WHERE id = (SELECT max(id) FROM {copy})")
    (finding,) = system.checker.check()
    assert (finding.invariant, finding.table) == ("commit equals the source", f"{ACCOUNTS.table}@warehouse")


def last_committed(checker: Checker) -> str:
    """The copy whose commit is the newest one of the table."""
    newest = {shape.table: checker.histories[shape.table] for shape in BRANCHES}
    return max(newest, key=lambda table: max(one.number for one in newest[table] if one.record))
