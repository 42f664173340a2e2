"""Databases that are not in UTF-8: texts are compared as everywhere else, by their code points."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from airflow_cdc_provider.core.proof.key_intervals import WHOLE
from airflow_cdc_provider.core.spec.definition import Comparison, Condition
from tests.connectors.conftest import Database, records

TABLE = "public.t"
TEXTS = ("a", "é", "ÿ", "Ž", "€")
"""By code points. In Windows-1252 the last two have the bytes 8e and 80, the others before them e9 and ff."""
FILTERS = [
    (Condition("v", Comparison.GREATER, "é"), {"ÿ", "Ž", "€"}),
    (Condition("v", Comparison.LESS_OR_EQUAL, "Ž"), {"a", "é", "ÿ", "Ž"}),
    (Condition("v", Comparison.EQUAL, "€"), {"€"}),
    (Condition("v", Comparison.IN, ("€", "日", "a\\'")), {"€"}),
    (Condition("v", Comparison.NOT_EQUAL, "日"), set(TEXTS)),
    (Condition("v", Comparison.LESS, "日"), set(TEXTS)),
]


@pytest.fixture(params=["text", "varchar(9)", "bpchar(1)"])
def western(database: Database, request: pytest.FixtureRequest) -> Iterator[Database]:
    name = f"western_{database.name}"
    database.sql(f"CREATE DATABASE {name} ENCODING 'WIN1252' LOCALE 'C' TEMPLATE template0")
    database.drop()
    database.name = name
    database.connection = database.connect()
    database.source = database.source_as("postgres", database.server.password)
    database.sql("SET client_encoding TO 'UTF8'", f"CREATE TABLE t (v {request.param} PRIMARY KEY)")
    database.sql("ALTER TABLE t REPLICA IDENTITY FULL")
    database.publish("t")
    yield database


def fill(database: Database) -> None:
    database.sql(*(f"INSERT INTO t VALUES ('{text}')" for text in TEXTS))


def test_a_row_filter_compares_code_points(western: Database) -> None:
    start = western.source.open_stream([TABLE])
    fill(western)
    for condition, expected in FILTERS:
        task = western.task(TABLE, where=[condition])
        streamed = {json.loads(record.key or "")[0] for record in records(western.read(start, task))}
        with western.source.copy(task, 1, {}, 1) as copy:
            assert {row["v"] for row in western.copied(copy)} == streamed == expected


def test_intervals_of_a_key_are_those_of_the_target(western: Database) -> None:
    fill(western)
    with western.source.snapshot(western.task(TABLE), 1, {}, 1) as snapshot:
        proofs = snapshot.proofs
        assert proofs is not None
        cuts = proofs.cuts(WHOLE, 1)
        assert cuts == [(text,) for text in TEXTS]
        sums = proofs.sums(WHOLE.split(cuts))
        assert {number: one.rows for number, one in sums.items()} == dict.fromkeys(range(len(TEXTS)), 1)
        found = western.source.read_split(proofs.rows([WHOLE], ["€", "日"]).splits[0], snapshot.copy.schema)
        assert [row for table in found for row in table.to_pylist()] == [{"v": "€"}]
