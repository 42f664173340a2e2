"""Where a batch ends at schema changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_cdc_provider.core.spec.schema_policy import OnChange, OnDrop, SchemaPolicy
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from spark_jobs.batches.schema_evolution import Walk, WindowSchemas, walk_schemas

INT, BIG, TEXT = (LogicalType(kind) for kind in (Kind.INT32, Kind.INT64, Kind.TEXT))
ID, A, B = Column("id", INT, False), Column("a", TEXT), Column("b", TEXT, initial='"x"')


def schema(*columns: Column) -> TableSchema:
    return TableSchema("t", (ID, *columns), ("id",))


def walk(current: TableSchema, start: int, *windows: WindowSchemas, policy: SchemaPolicy | None = None) -> Walk:
    return walk_schemas(current, start, windows, policy or SchemaPolicy())


def test_added_columns_are_collected_over_windows() -> None:
    windows = WindowSchemas(4, (schema(A),)), WindowSchemas(5, ()), WindowSchemas(6, (schema(A, B),))
    assert walk(schema(), 3, *windows) == Walk(6, schema(A, B), (A, B))


def test_a_batch_stops_before_the_window_of_another_change() -> None:
    narrower = schema(replace(A, type=INT))
    walked = walk(schema(A), 3, WindowSchemas(4, (schema(A),)), WindowSchemas(5, (narrower,)))
    assert (walked.window, walked.schema, walked.added) == (4, schema(A), ())
    assert walked.stop and (walked.stop.window, walked.stop.before, walked.stop.after) == (4, schema(A), narrower)


def test_a_change_amid_a_window_stops_the_batch_before_the_window() -> None:
    walked = walk(schema(A), 3, WindowSchemas(4, (schema(A, B), schema(replace(A, type=INT)))))
    assert walked.window == 3 and walked.stop and walked.stop.before == schema(A)


C, D, WIDE = Column("c", INT), Column("d", TEXT), Column("c", BIG)
FOLLOW = SchemaPolicy(drop_column=OnDrop.DROP)


@pytest.mark.parametrize(
    ("current", "schemas", "renamed"),
    [
        (schema(WIDE), (schema(C), schema(WIDE)), None),
        (schema(WIDE), (schema(C), schema(WIDE, A)), None),
        (schema(WIDE), (schema(C), schema(C, A), schema(WIDE, A)), None),
        (schema(), (schema(A), schema()), None),
        (schema(D), (schema(A), schema(D)), {"a": "d"}),
        (schema(replace(D, id="2")), (schema(replace(A, id="2")), schema(replace(D, id="2"))), None),
    ],
    ids=["wider", "wider, and a new one", "a new one, and wider", "dropped", "renamed", "renamed by id"],
)
def test_records_from_before_an_alteration_of_the_target_do_not_stop_a_batch(
    current: TableSchema, schemas: tuple[TableSchema, ...], renamed: dict[str, str] | None
) -> None:
    walked = walk_schemas(current, 3, [WindowSchemas(4, schemas)], FOLLOW, renamed=renamed)
    assert (walked.window, walked.schema, walked.stop) == (4, schemas[-1], None)


@pytest.mark.parametrize(
    ("current", "schemas"),
    [
        (schema(WIDE), (schema(C),)),
        (schema(WIDE), (schema(C), schema(A))),
        (schema(C), (schema(C), schema(WIDE))),
        (schema(A, B), (schema(B), schema(A, B))),
        (schema(D), (schema(A), schema(D))),
    ],
    ids=["narrower", "narrower, and then dropped", "not altered yet", "returning", "renamed without an answer"],
)
def test_other_schemas_stop_a_batch(current: TableSchema, schemas: tuple[TableSchema, ...]) -> None:
    walked = walk_schemas(current, 3, [WindowSchemas(4, schemas)], FOLLOW)
    assert walked.window == 3 and walked.stop


def test_an_added_column_whose_older_values_are_unknown_stops_the_batch() -> None:
    walked = walk(schema(), 0, WindowSchemas(1, (schema(A),), unknown=("a",)))
    assert walked.window == 0 and walked.stop and walked.stop.unknown == ("a",)


def test_a_dropped_column_that_is_kept_does_not_stop_a_batch() -> None:
    assert walk(schema(A, B), 0, WindowSchemas(1, (schema(B),))) == Walk(1, schema(B))
    stopped = walk(schema(A, B), 0, WindowSchemas(1, (schema(B),)), policy=SchemaPolicy(drop_column=OnDrop.DROP))
    assert stopped.window == 0 and stopped.stop


def test_an_added_column_stops_a_batch_until_an_operator_has_approved_it() -> None:
    policy, windows = SchemaPolicy(add_column=OnChange.ASK), [WindowSchemas(1, (schema(A),))]
    stopped = walk(schema(), 0, *windows, policy=policy)
    assert stopped.stop and stopped.stop.after == schema(A)
    assert walk_schemas(schema(), 0, windows, policy, lambda stop: stop == stopped.stop) == Walk(1, schema(A), (A,))


def test_an_approved_change_of_a_type_stops_a_batch_all_the_same() -> None:
    wide = TableSchema("t", (replace(ID, type=BIG),), ("id",))
    walked = walk_schemas(schema(), 0, [WindowSchemas(1, (wide,))], SchemaPolicy(), lambda _: True)
    assert walked.stop and walked.window == 0


def test_a_column_name_that_is_used_again_starts_a_new_batch() -> None:
    windows = [WindowSchemas(1, (schema(B),)), WindowSchemas(2, (schema(B, A),))]
    assert walk(schema(A, B), 0, *windows) == Walk(1, schema(B))
    assert walk(schema(B), 1, *windows[1:]).added == (A,)
    at_once = walk(schema(A, B), 0, WindowSchemas(1, (schema(B), schema(B, A))))
    assert at_once.window == 0 and at_once.stop and at_once.stop.returning == ("a",)


def test_a_column_name_that_differs_from_a_former_one_in_case_alone_starts_a_new_batch() -> None:
    """To most targets it is that column."""
    upper = Column("A", INT)
    windows = WindowSchemas(1, (schema(),)), WindowSchemas(2, (schema(upper),))
    assert walk(schema(A), 0, *windows) == Walk(1, schema())
    at_once = walk(schema(A), 0, WindowSchemas(1, (schema(), schema(upper))))
    assert at_once.window == 0 and at_once.stop and at_once.stop.returning == ("A",)


def test_a_column_added_and_dropped_again_leaves_nothing_to_add() -> None:
    walked = walk(schema(), 0, WindowSchemas(1, (schema(A),)), WindowSchemas(2, (schema(),)))
    assert walked == Walk(2, schema())
