"""What the columns of a source become in the copy."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.connectors.copied.images import CopiedImages
from airflow_cdc_provider.core.columns.copied import CopiedColumns, source_schema
from airflow_cdc_provider.core.columns.functions import hash_function, hash_key, hash_key_id, mask_function
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.spec.columns import AddedColumn, Columns, Metadata
from airflow_cdc_provider.core.spec.definition import Definition, OnUnrepresentable, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema

KEY = b"k" * 32
ID = Column("id", LogicalType(Kind.INT32), nullable=False, native="integer")
EMAIL = Column("email", LogicalType(Kind.TEXT), native="varchar(20)", initial='"none"')
AMOUNT = Column("amount", LogicalType(Kind.DECIMAL, 10, 2))
NOTE = Column("note", LogicalType(Kind.TEXT))
SCHEMA = TableSchema("public.customer", (ID, EMAIL, AMOUNT, NOTE), ("id",))


def columns(schema: TableSchema = SCHEMA, set_null: bool = False, **settings: Any) -> CopiedColumns:
    what = OnUnrepresentable.SET_NULL if set_null else OnUnrepresentable.STOP
    rule = TableRule("public.customer", columns=Columns(**settings), on_unrepresentable=what)
    return CopiedColumns(rule, schema, KEY)


def hmac_of(text: str) -> str:
    return hmac.new(KEY, text.encode(), hashlib.sha256).hexdigest()


def test_columns_get_their_names_types_and_initial_values_in_the_order_of_the_source() -> None:
    schema = columns(
        rename={"id": "customer_id", "email": "mail"},
        hash=("id", "email"),
        mask={"note": 4},
        cast={"amount": "decimal(12,4)"},
        add=(AddedColumn("region", "eu"), AddedColumn("at", metadata=Metadata.COMMIT_TIME)),
    ).copied_schema
    types = {column.name: str(column.type) for column in schema.columns}
    assert types == {
        "customer_id": "text",
        "mail": "text",
        "amount": "decimal(12,4)",
        "note": "text",
        "region": "text",
        "at": "timestamptz",
    }
    assert list(types) == ["customer_id", "mail", "amount", "note", "region", "at"]
    assert schema.key == ("customer_id",) and not schema.column("customer_id").nullable
    assert schema.column("mail").initial == f'"{hmac_of("none")}"'
    assert schema.column("mail").native == "varchar(64)", "a database that limits keys gets the length of a hash"


def test_the_schema_of_the_source_can_be_derived_from_that_of_the_copy() -> None:
    settings: dict[str, Any] = {"rename": {"note": "remark"}, "hash": ("id", "email"), "cast": {"amount": "float64"}}
    copied = columns(**settings, add=(AddedColumn("region", "eu"),)).copied_schema
    expected = replace(SCHEMA, columns=tuple(replace(c, initial=None) for c in SCHEMA.columns))
    assert source_schema(copied) == expected
    assert source_schema(SCHEMA) == SCHEMA


def test_known_columns_supply_the_initial_values_that_the_source_schema_lacks() -> None:
    made = columns(hash=("email",))
    again = replace(made, schema=source_schema(made.copied_schema), known=made.copied_schema.columns)
    assert again.copied_schema == made.copied_schema


def test_a_schema_without_such_settings_keeps_its_id() -> None:
    assert columns().copied_schema == SCHEMA
    assert SCHEMA.schema_id == "d2c328c58857619f"


def test_an_initial_value_that_cannot_be_cast_is_unknown() -> None:
    assert columns(cast={"email": "int32"}).copied_schema.column("email").initial is None


def test_a_failed_cast_is_null_beside_its_text_which_is_hashed_like_the_value() -> None:
    made = columns(set_null=True, cast={"note": "int32"}, hash=("note",))
    by_name = {one.column.name: one for one in made.columns}
    assert list(by_name) == ["id", "email", "amount", "note", "_cdc_text_note"]
    value, text = by_name["note"].convert, by_name["_cdc_text_note"].failed
    assert value is not None and text is not None
    assert (value("7"), text.text("7")) == (hmac_of("7"), None)
    assert (value("x"), text.text("x")) == (None, hmac_of("x"))


@given(st.integers(-(10**15), 10**15))
def test_equal_numbers_have_one_hash_whatever_their_types(number: int) -> None:
    integer, decimal = hash_function(Kind.INT64, KEY), hash_function(Kind.DECIMAL, KEY)
    assert integer(number) == decimal(Decimal(number).quantize(Decimal("0.001"))) == hmac_of(str(number))
    assert hash_function(Kind.TEXT, KEY)(str(number)) == integer(number)


def test_a_hash_depends_on_the_key_and_reveals_neither() -> None:
    other = hash_function(Kind.TEXT, b"o" * 32)
    assert other("a@b.c") != hash_function(Kind.TEXT, KEY)("a@b.c")
    assert hash_key_id(KEY) != hash_key_id(b"o" * 32) and hash_key_id(b"") == ""


@given(st.text(), st.integers(0, 100))
def test_a_mask_shows_at_most_half_of_a_value_and_not_its_length(text: str, characters: int) -> None:
    shown = mask_function(Kind.TEXT, characters)(text)
    assert shown.startswith("****")
    rest = shown.removeprefix("****")
    assert len(rest) in (0, characters) and 2 * len(rest) <= len(text) and text.endswith(rest)


def test_a_short_key_is_refused_and_a_definition_without_hashes_needs_none() -> None:
    rules = (TableRule("t", columns=Columns(hash=("a",))),)
    shop = Definition(
        name="shop",
        source=Source("postgres", "db"),
        target=Target("delta", "/lake"),
        tables=rules,
        staging=Staging("/staging"),
    )
    assert hash_key(shop, ConnectionInfo("k", password="0123456789abcdef")) == b"0123456789abcdef"
    with pytest.raises(CheckFailed, match="CON004") as refused:
        hash_key(shop, ConnectionInfo("k", password="0123456789abcde"))
    assert "0123456789" not in str(refused.value)
    assert hash_key(replace(shop, tables=(TableRule("t"),)), ConnectionInfo()) == b""


def test_one_text_column_has_the_values_that_the_source_or_the_cast_cannot_represent() -> None:
    at, text = Column("at", LogicalType(Kind.TIMESTAMP)), Column("_cdc_text_at", LogicalType(Kind.TEXT))
    made = columns(replace(SCHEMA, columns=(ID, at, text)), True, cast={"at": "date"}, rename={"at": "day"})
    assert made.copied_schema.names == ("id", "day", "_cdc_text_day")
    images = CopiedImages(made)

    def row(value: str, kept: str) -> str:
        return images.image(f'{{"id":1,"at":{value},"_cdc_text_at":{kept}}}', {}).text

    assert row('"2024-01-02T00:00:00"', "null") == '{"id":1,"day":"2024-01-02","_cdc_text_day":null}'
    assert row('"2024-01-02T12:00:00"', "null") == '{"id":1,"day":null,"_cdc_text_day":"2024-01-02T12:00:00"}'
    assert row("null", '"infinity"') == '{"id":1,"day":null,"_cdc_text_day":"infinity"}'
    assert row("null", "null") == '{"id":1,"day":null,"_cdc_text_day":null}'
