"""Merges as data: the clauses, their order, and the ranges that bound them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.merge_plan import Action, MergePlan, RowMatch, merge_ranges, schema_delta
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.targets.bigquery.sql import BigQuerySql
from airflow_cdc_provider.targets.mysql.sql import MysqlSql
from airflow_cdc_provider.targets.postgres.sql import PostgresSql
from airflow_cdc_provider.targets.redshift.sql import RedshiftSql

ID = Column("id", LogicalType(Kind.INT32), nullable=False)
KEYED = TableSchema("t", (ID,), ("id",))
KEYLESS = TableSchema("t", (ID,))

values = st.integers(-1000, 1000)
ranges = st.lists(st.tuples(values, values).map(lambda pair: (min(pair), max(pair))), min_size=1, max_size=40)


def clauses_of(plan: MergePlan) -> list[tuple[RowMatch, Action]]:
    return [(clause.rows, clause.action) for clause in plan.clauses()]


def test_a_hard_delete_deletes_a_soft_one_flags_and_an_ignored_one_does_nothing() -> None:
    actions = {kind: [action for _, action in clauses_of(MergePlan(KEYED, kind))] for kind in OnDelete}
    assert actions == {
        OnDelete.HARD: [Action.UPDATE, Action.DELETE, Action.INSERT],
        OnDelete.SOFT: [Action.UPDATE, Action.MARK_DELETED, Action.INSERT],
        OnDelete.IGNORE: [Action.UPDATE, Action.INSERT],
    }


def test_only_a_repair_of_soft_deletes_inserts_missing_rows_and_only_complete_ones() -> None:
    def inserts_deleted(plan: MergePlan) -> list[bool]:
        return [clause.whole_only for clause in plan.clauses() if clause.action is Action.INSERT_DELETED]

    assert inserts_deleted(MergePlan(KEYED, OnDelete.SOFT, partial=True, not_older=True)) == [True]
    assert not inserts_deleted(MergePlan(KEYED, OnDelete.SOFT, partial=True))
    assert not any(
        inserts_deleted(MergePlan(KEYED, kind, partial=True, not_older=True))
        for kind in (OnDelete.HARD, OnDelete.IGNORE)
    )


def test_a_partial_row_is_refused_before_it_could_be_inserted() -> None:
    alone = [
        clause
        for clause in MergePlan(KEYED, OnDelete.HARD, partial=True).clauses()
        if clause.rows is RowMatch.STAGED_ONLY
    ]
    assert [(clause.action, clause.partial_only) for clause in alone] == [(Action.REFUSE, True), (Action.INSERT, False)]


def test_every_write_to_a_keyed_row_has_the_row_guard_and_none_to_a_keyless_one() -> None:
    for kind in OnDelete:
        both = [c for c in MergePlan(KEYED, kind, partial=True, truncated=True).clauses() if c.rows is RowMatch.BOTH]
        assert all(clause.guarded for clause in both)
    assert not any(clause.guarded for clause in MergePlan(KEYLESS, OnDelete.HARD).clauses())


@pytest.mark.parametrize("schema", [KEYED, KEYLESS])
def test_a_truncate_or_an_initial_value_reaches_every_row(schema: TableSchema) -> None:
    added = Column("x", LogicalType(Kind.INT32), initial="7")
    assert not MergePlan(schema, OnDelete.HARD, added=(ID,)).changes_unmatched_rows
    assert clauses_of(MergePlan(schema, OnDelete.HARD, truncated=True))[-1] == (RowMatch.TARGET_ONLY, Action.DELETE)
    assert clauses_of(MergePlan(schema, OnDelete.HARD, added=(added,)))[-1] == (RowMatch.TARGET_ONLY, Action.FILL)


@given(ranges, st.integers(1, 16))
def test_merged_ranges_cover_all_given_ones_in_order_and_within_the_limit(
    given_ranges: list[tuple[int, int]], limit: int
) -> None:
    covered = merge_ranges(given_ranges, limit)
    assert len(covered) <= limit
    assert all(before[1] < after[0] for before, after in pairwise(covered))
    assert all(any(low <= a and b <= high for low, high in covered) for a, b in given_ranges)


def test_the_widest_gaps_remain() -> None:
    assert merge_ranges([(1, 2), (4, 5), (100, 101), (103, 110)], 2) == ((1, 5), (100, 110))


def test_a_column_that_the_target_already_has_restarts_from_its_initial_value_or_null() -> None:
    text = LogicalType(Kind.TEXT)
    new, old, set_before = Column("new", text), Column("Old", text), Column("set", text, initial='"x"')
    grown = schema_delta([new, old, set_before], ["id", "old", "SET"])
    assert grown.missing == (new,)
    assert [(column.name, column.initial) for column in grown.added] == [("new", None), ("Old", "null"), ("set", '"x"')]


def test_a_target_that_distinguishes_case_gets_a_column_beside_one_in_another_case() -> None:
    new = Column("Old", LogicalType(Kind.TEXT))
    assert schema_delta([new], ["old"], PostgresSql("s").column_id).missing == (new,)
    for sql in (RedshiftSql("s"), MysqlSql("s")):
        assert schema_delta([new], ["old"], sql.column_id).missing == ()


def test_a_column_is_found_under_the_name_that_the_target_gave_it() -> None:
    new = Column("a b", LogicalType(Kind.TEXT))
    bigquery = BigQuerySql("p", "d")
    assert schema_delta([new], [bigquery.quoted("A b").strip("`")], bigquery.column_id).missing == ()
