"""The stand-in for Spanner, by Google's own client."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import spanner

from airflow_cdc_provider.sandbox.spanner import EmbeddedSpanner, limits
from airflow_cdc_provider.sandbox.spanner.faults import Fault
from tests.spanner_client import open_database

pytestmark = pytest.mark.server

ALL = spanner.KeySet(all_=True)
TABLE = "CREATE TABLE t (id INT64 NOT NULL, v STRING(MAX)) PRIMARY KEY (id)"


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedSpanner]:
    with EmbeddedSpanner() as server:
        yield server


@pytest.fixture
def database(server: EmbeddedSpanner) -> Iterator[Any]:
    server.arm(Fault.NONE)
    database = open_database(server.port, f"d{uuid.uuid4().hex[:20]}")
    database.update_ddl([TABLE]).result()
    yield database
    database.drop()


def insert(database: Any, *rows: tuple[Any, ...], table: str = "t") -> Any:
    with database.batch() as batch:
        batch.insert_or_update(table, ["id", "v"], rows)
    return batch.committed


def read(database: Any, table: str = "t", keys: Any = ALL, **when: Any) -> list[list[Any]]:
    with database.snapshot(**when) as snapshot:
        return list(snapshot.read(table, ["id", "v"], keys))


def test_mutations_insert_update_replace_and_delete(database: Any) -> None:
    with database.batch() as batch:
        batch.insert("t", ["id", "v"], [[1, "a"], [2, "b"], [3, "c"]])
        batch.update("t", ["id", "v"], [[1, "A"]])
        batch.replace("t", ["id"], [[2]])
        batch.delete("t", spanner.KeySet(keys=[[3]]))
    assert read(database) == [[1, "A"], [2, None]]
    with pytest.raises(exceptions.AlreadyExists), database.batch() as batch:
        batch.insert("t", ["id", "v"], [[4, "d"], [1, "x"]])
    with pytest.raises(exceptions.NotFound), database.batch() as batch:
        batch.update("t", ["id", "v"], [[9, "x"]])
    assert read(database) == [[1, "A"], [2, None]], "a commit is applied as a whole or not at all"


def test_keys_come_in_order_and_ranges_are_prefixes(database: Any) -> None:
    database.update_ddl(["CREATE TABLE k (id INT64, v STRING(MAX)) PRIMARY KEY (id, v)"]).result()
    insert(database, (10, "b"), (2, "a"), (None, "n"), (2, None), (10, "a"), table="k")
    assert read(database, "k") == [[None, "n"], [2, None], [2, "a"], [10, "a"], [10, "b"]]
    two = spanner.KeySet(ranges=[spanner.KeyRange(start_closed=[2], end_closed=[2])])
    assert read(database, "k", two) == [[2, None], [2, "a"]]
    after = spanner.KeySet(ranges=[spanner.KeyRange(start_open=[2, "a"], end_closed=[])])
    assert read(database, "k", after) == [[10, "a"], [10, "b"]]
    with database.batch() as batch:
        batch.delete("k", spanner.KeySet(ranges=[spanner.KeyRange(start_closed=[2], end_open=[10])]))
    assert read(database, "k") == [[None, "n"], [10, "a"], [10, "b"]]


def test_a_transaction_whose_reads_have_changed_is_aborted_and_runs_again(database: Any) -> None:
    insert(database, (1, "a"))
    seen = []

    def work(transaction: Any) -> None:
        seen.append(list(transaction.read("t", ["v"], ALL)))
        if len(seen) == 1:
            insert(database, (2, "between"))
        transaction.update("t", ["id", "v"], [[1, str(len(seen))]])

    database.run_in_transaction(work)
    assert seen == [[["a"]], [["a"], ["between"]]]
    assert read(database) == [[1, "2"], [2, "between"]]


def test_a_transaction_whose_reads_have_not_changed_is_not_aborted(database: Any) -> None:
    insert(database, (1, "a"), (2, "b"))
    runs = []

    def work(transaction: Any) -> None:
        runs.append(list(transaction.read("t", ["v"], spanner.KeySet(keys=[[1]]))))
        insert(database, (2, "other"))
        transaction.update("t", ["id", "v"], [[1, "A"]])

    database.run_in_transaction(work)
    assert len(runs) == 1


def test_an_aborted_commit_runs_again(server: EmbeddedSpanner, database: Any) -> None:
    server.arm(Fault.ABORT)
    database.run_in_transaction(lambda transaction: transaction.insert("t", ["id", "v"], [[1, "a"]]))
    assert read(database) == [[1, "a"]]


def test_earlier_times_are_read_as_they_were_through_renames(database: Any) -> None:
    first = insert(database, (1, "a"))
    insert(database, (1, "b"))
    database.update_ddl(
        [
            "CREATE TABLE n (id INT64 NOT NULL, v STRING(MAX)) PRIMARY KEY (id)",
            "RENAME TABLE t TO o, n TO t",
            "DROP TABLE o",
        ]
    ).result()
    insert(database, (7, "new"))
    assert read(database) == [[7, "new"]]
    assert read(database, read_timestamp=first) == [[1, "a"]]
    assert read(database, exact_staleness=timedelta(0)) == [[7, "new"]]


def test_a_commit_timestamp_is_the_time_at_which_the_commit_is_visible(database: Any) -> None:
    database.update_ddl(
        ["CREATE TABLE c (id INT64, at TIMESTAMP OPTIONS (allow_commit_timestamp = true)) PRIMARY KEY (id)"]
    ).result()
    with database.batch() as batch:
        batch.insert("c", ["id", "at"], [[1, spanner.COMMIT_TIMESTAMP]])
    with database.snapshot() as snapshot:
        ((at,),) = snapshot.read("c", ["at"], ALL)
    assert at == batch.committed


def test_limits_of_a_commit(database: Any) -> None:
    rows = [(number, "") for number in range(limits.COMMIT_MUTATIONS // 2 + 1)]
    with pytest.raises(exceptions.InvalidArgument, match="too many mutations"):
        insert(database, *rows)
    insert(database, *rows[:-1])
    database.update_ddl(["CREATE INDEX by_v ON t (v)"]).result()
    with pytest.raises(exceptions.InvalidArgument, match="too many mutations"):
        insert(database, *rows[: limits.COMMIT_MUTATIONS // 3 + 1])
    wide = "x" * limits.STRING_CHARACTERS
    few = limits.COMMIT_BYTES // limits.STRING_CHARACTERS
    with pytest.raises(exceptions.InvalidArgument, match="maximum commit size"):
        insert(database, *((number, wide) for number in range(few + 1)))
    with pytest.raises(exceptions.FailedPrecondition, match="maximum size"):
        insert(database, (0, "x" * (limits.STRING_CHARACTERS + 1)))
    database.update_ddl(["CREATE TABLE k (id STRING(MAX), v STRING(MAX)) PRIMARY KEY (id)"]).result()
    with pytest.raises(exceptions.InvalidArgument, match="Key size"):
        insert(database, ("x" * (limits.KEY_BYTES + 1), ""), table="k")
    with database.batch() as batch:
        batch.delete("t", ALL)
    assert read(database) == []


def test_long_texts_arrive_in_several_messages(database: Any) -> None:
    long = "".join(map(str, range(100_000)))
    insert(database, (1, long), (2, "short"), (3, None))
    assert read(database) == [[1, long], [2, "short"], [3, None]]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE _x (id INT64) PRIMARY KEY (id)",
        f"CREATE TABLE {'x' * 129} (id INT64) PRIMARY KEY (id)",
        "CREATE TABLE x (id JSON) PRIMARY KEY (id)",
        "CREATE TABLE x (id INT64, ID INT64) PRIMARY KEY (id)",
        "CREATE TABLE T (id INT64) PRIMARY KEY (id)",
        "ALTER TABLE t ADD COLUMN n INT64 NOT NULL",
        "TRUNCATE TABLE t",
    ],
)
def test_schema_changes_that_spanner_refuses_are_refused(database: Any, statement: str) -> None:
    with pytest.raises((exceptions.InvalidArgument, exceptions.AlreadyExists, exceptions.Conflict)):
        database.update_ddl([statement]).result()


def test_a_table_is_neither_renamed_under_a_view_nor_dropped_with_indexes_or_privileges(database: Any) -> None:
    database.update_ddl(["CREATE VIEW w SQL SECURITY INVOKER AS SELECT t.id FROM t"]).result()
    with pytest.raises(exceptions.FailedPrecondition):
        database.update_ddl(["RENAME TABLE t TO u"]).result()
    database.update_ddl(["DROP VIEW w", "CREATE INDEX i ON t (v)"]).result()
    with pytest.raises(exceptions.FailedPrecondition):
        database.update_ddl(["DROP TABLE t"]).result()
    database.update_ddl(["DROP INDEX i", "CREATE ROLE r", "GRANT SELECT ON TABLE t TO ROLE r"]).result()
    with pytest.raises(exceptions.FailedPrecondition):
        database.update_ddl(["DROP TABLE t"]).result()
    database.update_ddl(["REVOKE SELECT ON TABLE t FROM ROLE r", "DROP TABLE t"]).result()


def test_a_slow_schema_change_is_waited_for(server: EmbeddedSpanner, database: Any) -> None:
    server.arm(Fault.SLOW)
    database.update_ddl(["ALTER TABLE t ADD COLUMN n INT64"]).result()


def test_a_lost_answer_is_an_error_although_the_commit_is_done(server: EmbeddedSpanner, database: Any) -> None:
    """Google's client sends the commit again, which is done once."""
    server.arm(Fault.ANSWER)
    database.run_in_transaction(lambda transaction: transaction.insert("t", ["id", "v"], [[1, "a"]]))
    assert read(database) == [[1, "a"]]


def test_a_partitioned_read_returns_every_row_once(database: Any) -> None:
    insert(database, *((number, str(number)) for number in range(10)))
    with database.batch_snapshot() as snapshot:
        batches = list(snapshot.generate_read_batches("t", ["id"], ALL))
        assert len(batches) > 1
        found = [row[0] for batch in batches for row in snapshot.process_read_batch(batch)]
    assert sorted(found) == list(range(10))


def test_other_queries_are_refused(database: Any) -> None:
    with pytest.raises(exceptions.MethodNotImplemented), database.snapshot() as snapshot:
        list(snapshot.execute_sql("SELECT * FROM t"))
