"""The exact scripts of commits to BigQuery, and the ids of their jobs."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.merge_plan import MergePlan
from airflow_cdc_provider.core.table.published_cut import Cut, CutTable
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.targets.bigquery.scripts import (
    commit_job,
    commit_script,
    cut_script,
    swap_job,
    swap_script,
    with_values,
)
from airflow_cdc_provider.targets.bigquery.sql import BigQuerySql
from airflow_cdc_provider.targets.database.commit import Commit, Swap
from airflow_cdc_provider.targets.database.merge_sql import merge_statements
from airflow_cdc_provider.targets.target import TargetState

SQL = BigQuerySql("p", "d")
RECORD = ControlRecord(
    "shop", "public.t", "log", "me", "one", 3, 9, "f0", State(TableState.REPLICATING, "now"), nonce="n"
)
NEXT = replace(RECORD, window=10, nonce="m", attempt="two")
EXPECTED = TargetState(True, RECORD, None, "i", RECORD.token)
SCHEMA = TableSchema("public.t", (Column("id", LogicalType(Kind.INT64), nullable=False),), ("id",))
GUARD = "IF @@row_count != 1 THEN RAISE USING MESSAGE = 'CDC_SUPERSEDED'; END IF;"


def lines(script: str) -> list[str]:
    """Without the JSON of control records."""
    return [re.sub(r"'\{.*\}'", "'{}'", line) for line in script.splitlines()]


def test_a_fence_is_one_change_of_the_control_row_as_it_was_read() -> None:
    assert lines(commit_script(SQL, Commit("t", EXPECTED, NEXT))) == [
        "BEGIN TRANSACTION;",
        f"UPDATE {SQL.table(SQL.control_table('t'))} SET `fence` = 3, `cursor_window` = 10, `nonce` = 'm',"
        " `record` = '{}' WHERE `target_table` = 't' AND `identity` = 'i' AND `fence` = 3 AND `cursor_window` = 9"
        " AND `nonce` = 'n';",
        GUARD,
        "COMMIT TRANSACTION;",
    ]


def test_a_merge_changes_the_control_row_first_counts_rows_and_refuses_changes_without_their_row() -> None:
    plan = MergePlan(SCHEMA, OnDelete.HARD, partial=True)
    statements = tuple(merge_statements(SQL, "T", "S", plan))
    script = lines(commit_script(SQL, Commit("t", EXPECTED, NEXT, statements)))
    assert script[:2] == [
        "DECLARE _cdc_rows_deleted, _cdc_rows_updated, _cdc_rows_inserted INT64 DEFAULT 0;",
        "BEGIN TRANSACTION;",
    ]
    assert script[3] == GUARD
    assert script[4].startswith("IF (SELECT count(*) FROM S AS _cdc_s WHERE")
    assert script[4].endswith("> 0 THEN RAISE USING MESSAGE = 'CDC_NO_ROW'; END IF;")
    assert [line for line in script[5:] if line.startswith("SET")] == [
        "SET _cdc_rows_deleted = _cdc_rows_deleted + @@row_count;",
        "SET _cdc_rows_updated = _cdc_rows_updated + @@row_count;",
        "SET _cdc_rows_inserted = _cdc_rows_inserted + @@row_count;",
    ]
    assert script[-2:] == ["COMMIT TRANSACTION;", "SELECT _cdc_rows_deleted, _cdc_rows_updated, _cdc_rows_inserted;"]


def test_a_copy_over_another_raises_its_fence_and_takes_the_name_after_the_transaction() -> None:
    script = lines(
        swap_script(SQL, Swap("t", "loaded", EXPECTED, replace(NEXT, fence=4)), "description = 'x'", ["GRANT y"])
    )
    raised = "`fence` = 4, `cursor_window` = 9"
    assert script[0] == "BEGIN TRANSACTION;" and raised in script[1] and script[2] == GUARD
    assert [line.split()[0] for line in script[3:6]] == ["DELETE", "INSERT", "UPDATE"]
    assert script[6:] == [
        "COMMIT TRANSACTION;",
        "CREATE OR REPLACE TABLE `p`.`d`.`t` COPY `p`.`d`.`loaded` OPTIONS(description = 'x');",
        "GRANT y;",
    ]


def test_a_first_copy_replaces_no_table() -> None:
    script = lines(swap_script(SQL, Swap("t", "loaded", TargetState(exists=False), NEXT), "description = 'x'", []))
    assert [line.split()[0] for line in script] == ["BEGIN", "DELETE", "INSERT", "COMMIT", "CREATE"]
    assert script[-1].startswith("CREATE TABLE `p`.`d`.`t` COPY")


def test_a_cut_replaces_older_ones_in_one_transaction() -> None:
    cut = Cut("shop", 9, "now", (CutTable("t", 9, "i"), CutTable("u", 8, "j")))
    begin, delete, insert, commit = lines(cut_script(SQL, cut))
    assert (begin, commit) == ("BEGIN TRANSACTION;", "COMMIT TRANSACTION;")
    assert delete == "DELETE FROM `p`.`d`.`_cdc_cut` WHERE `replicator` = 'shop' AND `cut_window` <= 9;"
    assert insert.count("SELECT 'shop' AS `replicator`") == 2
    assert insert.endswith(
        "WHERE NOT EXISTS (SELECT 1 FROM `p`.`d`.`_cdc_cut` WHERE `replicator` = 'shop' AND `cut_window` > 9);"
    )


def test_the_id_of_a_commit_is_the_same_when_it_is_asked_for_again_and_another_for_another_commit() -> None:
    others = [commit_job("u", NEXT), *(commit_job("t", replace(NEXT, **{key: "x"})) for key in ("attempt", "nonce"))]
    assert commit_job("t", NEXT) == commit_job("t", replace(NEXT, window=99)) and commit_job("t", NEXT) not in others
    assert swap_job("loaded") == "cdc-swap-loaded"


@pytest.mark.parametrize(
    ("text", "values", "filled"),
    [("100%", (), "100%"), ("a = %s AND b = %s", (5, "it's %s"), r"a = 5 AND b = 'it\'s %s'")],
)
def test_values_become_literals(text: str, values: tuple[object, ...], filled: str) -> None:
    assert with_values(text, values) == filled
