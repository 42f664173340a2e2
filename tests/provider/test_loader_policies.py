"""Policies in the YAML: of the replicator, of a table, and the defaults of both."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_cdc_provider.core.errors import DefinitionInvalid
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.spec.schema_policy import DEFAULTS
from airflow_cdc_provider.core.table.schema_changes import ChangeKind
from airflow_cdc_provider.loader import load_text

HEAD = """\
name: shop
source: {type: postgres, connection: db, publication: p}
target: {type: delta, location: /data/lake}
staging: {location: /data/staging}
"""


def loaded(text: str) -> Definition:
    return load_text((HEAD + text).encode(), "shop.yaml").definition


def policy(definition: Definition, kind: ChangeKind) -> str:
    """As a run applies it to the first table."""
    return str(definition.tables[0].schema_changes.over(definition.schema_changes).of(kind))


@pytest.mark.parametrize("kind", list(DEFAULTS), ids=str)
def test_a_table_decides_before_the_replicator_and_the_replicator_before_the_default(kind: ChangeKind) -> None:
    table = "tables:\n  - source: public.a\n"
    asks, stops = (f"schema_changes: {{{kind.value}: {choice}}}\n" for choice in ("ask", "stop"))
    assert policy(loaded(table), kind) == DEFAULTS[kind]
    assert policy(loaded(asks + table), kind) == "ask"
    assert policy(loaded(asks + table + "    " + stops), kind) == "stop"
    asked = loaded(asks + table)
    assert all(policy(asked, one) == DEFAULTS[one] for one in DEFAULTS if one is not kind)


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("new_tables: ask", "new_tables", "ask"),
        ("new_tables: ignore", "new_tables", "ignore"),
        ("", "new_tables", "copy"),
        ("dropped_tables: drop", "dropped_tables", "drop"),
        ("dropped_tables: keep", "dropped_tables", "keep"),
        ("dropped_tables: stop", "dropped_tables", "stop"),
    ],
)
def test_what_becomes_of_new_and_dropped_tables(text: str, name: str, value: str) -> None:
    found: Any = getattr(loaded(f"{text}\ntables:\n  - source: public.*\n"), name)
    assert str(found) == value


def test_operations_that_a_table_ignores() -> None:
    rule = loaded("tables:\n  - {source: public.a, ignore: [truncate, delete]}\n").tables[0]
    assert sorted(map(str, rule.ignore)) == ["delete", "truncate"]


@pytest.mark.parametrize(
    ("text", "where", "allowed"),
    [
        ("schema_changes: {widen: maybe}", "schema_changes.widen", "apply, ask, stop"),
        ("schema_changes: {drop_column: apply}", "schema_changes.drop_column", "keep"),
        ("new_tables: stop", "new_tables", "copy, ask, ignore"),
        ("dropped_tables: ask", "dropped_tables", "keep, drop, stop"),
    ],
)
def test_another_word_is_refused_with_the_allowed_ones(text: str, where: str, allowed: str) -> None:
    with pytest.raises(DefinitionInvalid) as raised:
        loaded(f"{text}\ntables:\n  - source: public.*\n")
    (problem,) = raised.value.problems
    assert where in problem.where and allowed in problem.allowed
