"""Where a batch ends at schema changes."""

from __future__ import annotations

from dataclasses import replace

from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from spark_jobs.batches.schema_evolution import WindowSchemas, walk_schemas

INT, BIG, TEXT = (LogicalType(kind) for kind in (Kind.INT32, Kind.INT64, Kind.TEXT))
ID, A, B = Column("id", INT, False), Column("a", TEXT), Column("b", TEXT, initial='"x"')


def schema(*columns: Column) -> TableSchema:
    return TableSchema("t", (ID, *columns), ("id",))


def test_added_columns_are_collected_over_windows() -> None:
    walked = walk_schemas(
        schema(), 3, [WindowSchemas(4, (schema(A),)), WindowSchemas(5, ()), WindowSchemas(6, (schema(A, B),))]
    )
    assert (walked.window, walked.schema, walked.added, walked.reason) == (6, schema(A, B), (A, B), "")


def test_a_batch_stops_before_the_window_of_a_breaking_change() -> None:
    narrower = schema(replace(A, type=INT))
    walked = walk_schemas(schema(A), 3, [WindowSchemas(4, (schema(A),)), WindowSchemas(5, (schema(A, B), narrower))])
    assert (walked.window, walked.schema, walked.added) == (4, schema(A), ())
    assert "a changed from text to int32" in walked.reason and walked.stopped_at == narrower


def test_a_widened_column_needs_a_new_copy() -> None:
    wide = TableSchema("t", (replace(ID, type=BIG),), ("id",))
    assert "cannot widen" in walk_schemas(schema(), 0, [WindowSchemas(1, (wide,))]).reason


def test_an_added_column_whose_older_values_are_unknown_needs_a_new_copy() -> None:
    walked = walk_schemas(schema(), 0, [WindowSchemas(1, (schema(A),), unknown=("a",))])
    assert walked.window == 0 and "the value of a new column in existing rows is unknown: a" in walked.reason


def test_a_dropped_column_alone_needs_no_new_copy() -> None:
    walked = walk_schemas(schema(A, B), 0, [WindowSchemas(1, (schema(B),))])
    assert (walked.window, walked.schema, walked.added, walked.reason) == (1, schema(B), (), "")


def test_a_column_name_that_is_used_again_starts_a_new_batch() -> None:
    windows = [WindowSchemas(1, (schema(B),)), WindowSchemas(2, (schema(B, A),))]
    walked = walk_schemas(schema(A, B), 0, windows)
    assert (walked.window, walked.schema, walked.reason) == (1, schema(B), "")
    assert walk_schemas(schema(B), 1, windows[1:]).added == (A,)
    at_once = walk_schemas(schema(A, B), 0, [WindowSchemas(1, (schema(B), schema(B, A)))])
    assert at_once.window == 0 and "dropped and added again" in at_once.reason


def test_a_column_added_and_dropped_again_leaves_nothing_to_add() -> None:
    walked = walk_schemas(schema(), 0, [WindowSchemas(1, (schema(A),)), WindowSchemas(2, (schema(),))])
    assert (walked.window, walked.schema, walked.added) == (2, schema(), ())
