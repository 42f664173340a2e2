"""Types that keep every value of a type, by their texts in a catalog."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.targets.database.declared_types import declared, is_kept_by, keeps_values, shows_same_texts

KEPT = [
    ("integer", "integer"),
    ("bigint", "integer"),
    ("numeric", "bigint"),
    ("numeric", "numeric(10,2)"),
    ("numeric(12,3)", "numeric(10,2)"),
    ("timestamp(6) with time zone", "timestamp with time zone"),
    ("character varying", "text"),
    ("varchar(300)", "varchar(255)"),
    ("longtext", "varchar(255)"),
    ("datetime(6)", "datetime(6)"),
]

NOT_KEPT = [
    ("timestamp(0) with time zone", "timestamp with time zone"),
    ("timestamp without time zone", "timestamp with time zone"),
    ("numeric(10,1)", "numeric(10,2)"),
    ("numeric(10,3)", "numeric(10,2)"),
    ("numeric(10,0)", "integer"),
    ("integer", "bigint"),
    ("integer", "numeric(10,2)"),
    ("character varying(20)", "text"),
    ("varchar(100)", "varchar(255)"),
    ("varchar(255)", "longtext"),
    ("text", "longtext"),
    ("int unsigned", "int"),
    ("datetime(0)", "datetime(6)"),
    ("real", "double precision"),
    ("jsonb", "json"),
    ('public."Money"', "numeric(10,2)"),
]


@pytest.mark.parametrize(("found", "wanted"), KEPT)
def test_a_type_that_keeps_every_value_is_accepted(found: str, wanted: str) -> None:
    assert keeps_values(declared(found), declared(wanted))


@pytest.mark.parametrize(("found", "wanted"), NOT_KEPT)
def test_a_type_that_changes_or_refuses_values_is_not_accepted(found: str, wanted: str) -> None:
    assert not keeps_values(declared(found), declared(wanted))


OTHER_TEXTS = [
    ("numeric(12,4)", "numeric(10,2)"),
    ("decimal(12,4)", "decimal(10,2)"),
    ("double precision", "real"),
]


@pytest.mark.parametrize(("found", "wanted"), OTHER_TEXTS)
def test_a_wider_type_may_show_other_texts(found: str, wanted: str) -> None:
    assert keeps_values(declared(found), declared(wanted))
    assert not shows_same_texts(declared(found), declared(wanted))


@pytest.mark.parametrize(("found", "wanted"), [one for one in KEPT if one != ("numeric(12,3)", "numeric(10,2)")])
def test_most_wider_types_show_the_same_texts(found: str, wanted: str) -> None:
    assert shows_same_texts(declared(found), declared(wanted))


@pytest.mark.parametrize(
    ("given", "kind", "kept"),
    [
        ("numeric(10,4)", "numeric(10,2)", False),
        ("numeric", "numeric(10,2)", False),
        ("double precision", "real", False),
        ("timestamp with time zone", "timestamp without time zone", False),
        ("varchar(20)", "longblob", False),
        ("numeric(8,2)", "numeric(10,2)", True),
        ("integer", "bigint", True),
        ("int unsigned", "bigint", True),
        ("int unsigned zerofill", "bigint", True),
        ("bigint unsigned", "decimal(20,0)", True),
        ("bigint unsigned", "bigint", False),
        ("decimal(10,2) unsigned", "decimal(10,2)", True),
        ("decimal(10,2) unsigned zerofill", "decimal(10,1)", False),
        ("bit(1)", "tinyint(1)", True),
        ("timestamp(0) without time zone", "timestamp without time zone", True),
        ("timestamp", "datetime(6)", True),
        ("character varying(20)", "text", True),
        ("enum('a','b')", "longtext", True),
    ],
)
def test_a_table_that_is_taken_over_keeps_what_its_columns_have(given: str, kind: str, kept: bool) -> None:
    assert is_kept_by(given, kind) is kept
