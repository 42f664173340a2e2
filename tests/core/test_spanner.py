"""Names, types, exact mutations and statements for Spanner, and the parameters of a login."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.api_core import exceptions
from google.auth.exceptions import DefaultCredentialsError
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Value
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CdcError, CheckFailed
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.merge_plan import COPY, GONE, KNOWN, LIVE, OP, ORDER, PUT, MergePlan
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.targets.spanner.changes import REFUSED, Change, Found, KeyedRules, Staged, Verb
from airflow_cdc_provider.targets.spanner.columns import (
    SpannerType,
    add_column,
    create_table,
    stored_type,
)
from airflow_cdc_provider.targets.spanner.database import SpannerDatabase
from airflow_cdc_provider.targets.spanner.errors import translated
from airflow_cdc_provider.targets.spanner.mutations import mutation_count
from airflow_cdc_provider.targets.spanner.names import column_name, is_name, quoted, same_names
from airflow_cdc_provider.targets.spanner.options import Json, SpannerOptions
from airflow_cdc_provider.targets.spanner.rows import KeyedRows, KeylessRows, Stored, hashes_of
from airflow_cdc_provider.targets.spanner.session import tag
from airflow_cdc_provider.targets.spanner.sizes import split

ID, NAME = Column("id", LogicalType(Kind.INT64), nullable=False), Column("first name", LogicalType(Kind.TEXT))
KEYED, KEYLESS = TableSchema("public.t", (ID, NAME), ("id",)), TableSchema("public.t", (ID, NAME))
SOFT, HARD = (Stored("t", KEYED, soft, Json.TEXT) for soft in (True, False))
OLD, NEW = "1", "2"


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("id", "id"),
        ("_cdc_order", "cdc_order"),
        ("Unit price", "Unit_price"),
        ("2nd", "c_2nd"),
        ("größe", "gr__e"),
        ("__", "c_"),
    ],
)
def test_a_column_gets_a_name_that_spanner_accepts(name: str, stored: str) -> None:
    assert column_name(name) == stored and is_name(stored)


@given(st.text(min_size=1, max_size=40))
def test_every_name_of_a_column_becomes_a_name_of_spanner(name: str) -> None:
    assert is_name(column_name(name))


def test_columns_that_would_get_one_name_are_found() -> None:
    assert same_names(["a b", "A_b", "c", "_c", "d"]) == [("a b", "A_b"), ("c", "_c")]


@pytest.mark.parametrize(
    ("kind", "in_key", "stored"),
    [
        (LogicalType(Kind.INT16), False, SpannerType.INT64),
        (LogicalType(Kind.FLOAT32), False, SpannerType.FLOAT32),
        (LogicalType(Kind.FLOAT32), True, SpannerType.FLOAT64),
        (LogicalType(Kind.DECIMAL, 38, 9), False, SpannerType.NUMERIC),
        (LogicalType(Kind.DECIMAL, 38, 8), False, SpannerType.STRING),
        (LogicalType(Kind.DECIMAL, 20, 10), False, SpannerType.STRING),
        (LogicalType(Kind.JSON), False, SpannerType.JSON),
        (LogicalType(Kind.JSON), True, SpannerType.STRING),
        (LogicalType(Kind.TIMESTAMP), False, SpannerType.TIMESTAMP),
    ],
    ids=str,
)
def test_types(kind: LogicalType, in_key: bool, stored: SpannerType) -> None:
    assert stored_type(kind, in_key, Json.JSON) is stored


def test_statements_of_tables() -> None:
    assert create_table("t", KEYED, True, Json.TEXT, "ab") == (
        "CREATE TABLE `t` (`id` INT64 NOT NULL, `first_name` STRING(MAX), `cdc_order` STRING(MAX) NOT NULL,"
        " `cdc_deleted` BOOL NOT NULL, CONSTRAINT `cdc_copy_ab` CHECK (`cdc_order` IS NOT NULL)) PRIMARY KEY (`id`)"
    )
    assert create_table("t", KEYLESS, False, Json.TEXT, "ab") == (
        "CREATE TABLE `t` (`id` INT64, `first_name` STRING(MAX), `cdc_row` STRING(MAX) NOT NULL,"
        " `cdc_copy` STRING(MAX) NOT NULL, CONSTRAINT `cdc_copy_ab` CHECK (`cdc_row` IS NOT NULL))"
        " PRIMARY KEY (`cdc_row`, `cdc_copy`)"
    )
    assert add_column("t", Column("n o", LogicalType(Kind.INT32)), Json.TEXT, False) == (
        "ALTER TABLE `t` ADD COLUMN `n_o` INT64"
    )


DECISIONS: list[tuple[MergePlan, Staged, Found | None, Change | None]] = [
    (MergePlan(KEYED, OnDelete.HARD), Staged(LIVE, NEW), None, Change(Verb.INSERT, None)),
    (MergePlan(KEYED, OnDelete.HARD), Staged(LIVE, NEW), Found(OLD), Change(Verb.UPSERT, None)),
    (MergePlan(KEYED, OnDelete.HARD), Staged(LIVE, NEW), Found(NEW), None),
    (MergePlan(KEYED, OnDelete.HARD, not_older=True), Staged(LIVE, NEW), Found(NEW), Change(Verb.UPSERT, None)),
    (MergePlan(KEYED, OnDelete.HARD), Staged(GONE, NEW), Found(OLD), Change(Verb.DELETE)),
    (MergePlan(KEYED, OnDelete.HARD), Staged(GONE, NEW), None, None),
    (MergePlan(KEYED, OnDelete.IGNORE), Staged(GONE, NEW), Found(OLD), None),
    (MergePlan(KEYED, OnDelete.SOFT), Staged(GONE, NEW), Found(OLD), Change(Verb.UPDATE, frozenset(), True)),
    (MergePlan(KEYED, OnDelete.SOFT, partial=True), Staged(GONE, NEW), Found(OLD), Change(Verb.UPDATE, None, True)),
    (
        MergePlan(KEYED, OnDelete.HARD, partial=True),
        Staged(LIVE, NEW, frozenset({"id"})),
        Found(OLD),
        Change(Verb.UPDATE, frozenset({"id"})),
    ),
    (MergePlan(KEYED, OnDelete.HARD, partial=True), Staged(LIVE, NEW, frozenset({"id"})), None, REFUSED),
    (MergePlan(KEYED, OnDelete.SOFT, partial=True), Staged(LIVE, NEW, frozenset({"id"})), Found(OLD, True), REFUSED),
    (
        MergePlan(KEYED, OnDelete.SOFT, partial=True),
        Staged(PUT, NEW, frozenset({"id"})),
        Found(OLD, True),
        Change(Verb.REPLACE, frozenset({"id"})),
    ),
    (
        MergePlan(KEYED, OnDelete.HARD, partial=True),
        Staged(PUT, NEW, frozenset({"id"})),
        None,
        Change(Verb.INSERT, frozenset({"id"})),
    ),
    (
        MergePlan(KEYED, OnDelete.SOFT, partial=True, not_older=True),
        Staged(GONE, NEW),
        None,
        Change(Verb.INSERT, None, True),
    ),
]


@pytest.mark.parametrize(("plan", "staged", "found", "change"), DECISIONS)
def test_a_staged_row_changes_the_row_of_the_target(
    plan: MergePlan, staged: Staged, found: Found | None, change: Change | None
) -> None:
    assert KeyedRules.of(plan).change(staged, found) == change


def rows(*given: tuple[int, str | None, str, str, list[str] | None]) -> pa.Table:
    """Id, first name, order key, ``_cdc_op``, ``_cdc_known``."""
    ids, names, orders, ops, known = zip(*given, strict=True)
    return pa.table(
        {"id": ids, "first name": pa.array(names, pa.string()), ORDER: orders, OP: ops}
        | {KNOWN: pa.array(known, pa.list_(pa.string()))}
    )


def test_rows_with_one_verb_and_the_same_columns_are_one_mutation() -> None:
    staged = KeyedRows(
        SOFT,
        rows(
            (1, "a", NEW, LIVE, None),
            (2, None, NEW, LIVE, None),
            (3, None, NEW, GONE, ["id"]),
            (4, "d", NEW, LIVE, ["first name"]),
        ),
    )
    plan = MergePlan(KEYED, OnDelete.SOFT, partial=True)
    applied = staged.apply(plan, {("3",): Found(OLD), ("4",): Found(OLD)})
    assert [MessageToDict(mutation) for mutation in applied.mutations] == [
        {
            "insert": {
                "table": "t",
                "columns": ["id", "first_name", "cdc_order", "cdc_deleted"],
                "values": [["1", "a", NEW, False], ["2", None, NEW, False]],
            }
        },
        {
            "update": {
                "table": "t",
                "columns": ["id", "cdc_order", "cdc_deleted"],
                "values": [["3", NEW, True]],
            }
        },
        {
            "update": {
                "table": "t",
                "columns": ["id", "first_name", "cdc_order", "cdc_deleted"],
                "values": [["4", "d", NEW, False]],
            }
        },
    ]
    assert (applied.counts.inserted, applied.counts.updated, applied.counts.deleted) == (2, 2, 0)
    assert mutation_count(applied.mutations) == 8 + 3 + 4


def test_deleted_rows_are_one_mutation_each() -> None:
    staged = KeyedRows(HARD, rows((1, None, NEW, GONE, None), (2, None, NEW, GONE, None)))
    applied = staged.apply(MergePlan(KEYED, OnDelete.HARD), {("1",): Found(OLD), ("2",): Found(OLD)})
    assert [MessageToDict(mutation) for mutation in applied.mutations] == [
        {"delete": {"table": "t", "keySet": {"keys": [["1"], ["2"]]}}}
    ]
    assert mutation_count(applied.mutations) == 2


def test_equal_rows_without_a_key_leave_as_a_range() -> None:
    stored = Stored("t", KEYLESS, False, Json.TEXT)
    staged = pa.table({"id": [1, 1], "first name": ["a", "a"], OP: [GONE, COPY]})
    (one, _) = hashes_of(staged, stored)

    def read(table: str, columns: Sequence[str], keys: Any) -> Iterator[list[Value]]:
        assert columns == ["cdc_row"] and MessageToDict(keys) == {
            "ranges": [{"startClosed": [one], "endClosed": [one]}]
        }
        return iter([[Value(string_value=one)]] * 3)

    applied = KeylessRows(stored, staged).apply(read)
    delete, insert = (MessageToDict(mutation) for mutation in applied.mutations)
    assert delete == {"delete": {"table": "t", "keySet": {"ranges": [{"startClosed": [one], "endClosed": [one]}]}}}
    assert insert["insert"]["columns"] == ["id", "first_name", "cdc_row", "cdc_copy"]
    assert insert["insert"]["values"][0][:3] == ["1", "a", one]
    assert (applied.counts.inserted, applied.counts.deleted) == (1, 3)


def test_a_hash_differs_for_values_that_differ_and_does_not_count_a_null() -> None:
    narrow = Stored("t", TableSchema("t", (Column("f", LogicalType(Kind.FLOAT64)),)), False, Json.TEXT)
    floats = pa.table({"f": pa.array([0.0, -0.0, float("nan"), None, 1.5])})
    hashes = hashes_of(floats, narrow)
    assert len(set(hashes)) == 5
    wide = Stored("t", TableSchema("t", (*narrow.schema.columns, NAME)), False, Json.TEXT)
    assert hashes_of(floats.append_column("first name", pa.nulls(5, pa.string())), wide) == hashes


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 100)), max_size=40), st.integers(1, 100), st.integers(1, 200)
)
def test_slices_contain_every_row_once_and_exceed_no_limit_with_more_than_one_row(
    sizes: list[tuple[int, int]], most_mutations: int, most_bytes: int
) -> None:
    mutations, lengths = (np.array([pair[n] for pair in sizes], np.int64) for n in (0, 1))
    slices = list(split(mutations, lengths, most_mutations, most_bytes))
    assert [number for start, end in slices for number in range(start, end)] == list(range(len(sizes)))
    for start, end in slices:
        fits = mutations[start:end].sum() <= most_mutations and lengths[start:end].sum() <= most_bytes
        assert fits or end - start == 1


def test_an_unencrypted_connection_is_reported() -> None:
    options = SpannerOptions("i", "d")
    hosts = ("http://127.0.0.1", "private.example")
    plain, safe = (SpannerDatabase(ConnectionInfo("google_cloud", host), options, "shop") for host in hosts)
    assert [problem.code for problem in plain.tls_warnings()] == ["CON041"] and safe.tls_warnings() == []


def test_requests_are_tagged_with_the_replicator_and_the_window() -> None:
    assert tag("shop", "merge 412") == "cdc:shop:merge 412"
    assert tag("a" * 60, "merge 1") == f"cdc:{'a' * 38}:merge 1"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (exceptions.PermissionDenied("no"), "TGT062"),
        (exceptions.Unauthenticated("no"), "TGT061"),
        (DefaultCredentialsError("no"), "TGT061"),
        (exceptions.NotFound("no"), "TGT067"),
        (exceptions.Aborted("no"), "TGT065"),
        (exceptions.ServiceUnavailable("no"), "TGT060"),
        (exceptions.ResourceExhausted("no"), "TGT092"),
        (exceptions.InternalServerError("no"), "TGT064"),
        (exceptions.Unknown("no"), "TGT093"),
        (exceptions.InvalidArgument("The transaction contains too many mutations."), "TGT063"),
        (exceptions.FailedPrecondition("New value exceeds the maximum size"), "TGT063"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_errors_of_google_are_problems(error: Exception, code: str) -> None:
    with pytest.raises(CdcError) as raised, translated("here", "google_cloud"):
        raise error
    assert raised.value.problems[0].code == code


@pytest.mark.parametrize(
    "text", ["Row [secret,1] in table t already exists", 'Could not parse "secret"', "Key {String('secret')}"]
)
def test_errors_of_google_show_no_value(text: str) -> None:
    with pytest.raises(CdcError) as raised, translated("here", "google_cloud"):
        raise exceptions.AlreadyExists(text)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("name", ["a`b", "a b", "_a", "", "x" * 129])
def test_a_name_that_is_none_of_spanner_is_in_no_statement(name: str) -> None:
    with pytest.raises(CheckFailed, match="TGT056"):
        quoted(name)
