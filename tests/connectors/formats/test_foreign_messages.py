"""Messages that the configured format does not read: the reason names them and the forms that it reads."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_cdc_provider.connectors import FORMATS
from airflow_cdc_provider.connectors.decoders.common.foreign_messages import READS
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings
from airflow_cdc_provider.connectors.decoders.debezium.positions import POSITIONS
from tests.connectors.formats import debezium_messages as debezium
from tests.connectors.formats import ydb_goldens as ydb
from tests.connectors.formats.debezium_messages import S
from tests.connectors.formats.foreign_samples import CANAL, CDC, SAMPLES
from tests.connectors.formats.golden import Golden, as_json
from tests.connectors.formats.refusals import GOOD, pg_row, refused

KINDS = pytest.mark.parametrize("kind", FORMATS)
SUPPORTED = f"supported: {', '.join(POSITIONS)}"
SECRET = "value-of-a-row"


def reason(kind: str, value: Any, setting: DecoderSettings | None = None) -> str:
    message = GOOD[kind].message._replace(value=as_json(value))
    return refused(kind, message, setting or GOOD[kind].setting()).reason


def unwrapped(value: Any) -> str:
    setting = Golden("", GOOD["debezium"].message, schema=S, options={"unwrapped": True}).setting()
    return reason("debezium", value, setting)


@KINDS
@pytest.mark.parametrize("name", SAMPLES)
def test_a_message_of_another_tool_is_named_with_the_forms_that_the_format_reads(kind: str, name: str) -> None:
    sample = SAMPLES[name]
    if sample.format == kind:
        return
    text = reason(kind, sample.message)
    assert sample.words in text and f"`format: {kind}` reads {READS[kind]}" in text
    assert not sample.format or f"set `format: {sample.format}`" in text


def test_every_format_says_what_it_reads() -> None:
    assert READS.keys() == FORMATS.keys()


@KINDS
def test_a_message_of_no_known_form_is_described_too(kind: str) -> None:
    text = reason(kind, {"id": 1, "v": "x"})
    assert text.startswith("EVT006 ") and f"`format: {kind}` reads {READS[kind]}" in text


@KINDS
@pytest.mark.parametrize("name", SAMPLES)
def test_no_reason_contains_a_value(kind: str, name: str) -> None:
    message = dict.fromkeys(SAMPLES[name].message, SECRET)
    assert SECRET not in reason(kind, message)


def test_the_reason_of_a_row_alone_names_the_key_to_set() -> None:
    assert "set `unwrapped: true`" in reason("debezium", {"id": 1, "v": "x"})


def test_a_message_of_apicurios_converter_asks_for_the_registry() -> None:
    text = reason("debezium", SAMPLES["ExtJsonConverter"].message)
    assert text.startswith("EVT014 ") and "set `registry` under `source`" in text


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"payload": CDC}, "an object under `payload`, without its `schema`"),
        (
            {"payload": {**CDC, "source": debezium.pg()}},
            "an envelope of Debezium under `payload`, without its `schema`",
        ),
        ({"payload": {"id": 1}}, "an object under `payload`, without its `schema`"),
        ({"payload": None}, "no object under `payload`, without its `schema`"),
        ({"payload": "text"}, "no object under `payload`, without its `schema`"),
        ({"payload": CANAL}, "a message of Canal under `payload`, without its `schema`"),
        ({"schema": "s", "payload": CDC}, "an object under `payload`, beside a `schema` that is not one of Connect"),
    ],
)
def test_a_payload_without_the_schema_of_connect_is_described(value: Any, words: str) -> None:
    text = reason("debezium", value)
    assert words in text and "send the payload alone, or with its schema (`schemas.enable=true`)" in text
    assert "unwrapped" not in text.replace(READS["debezium"], "")


def test_the_reason_of_an_envelope_of_ydb_under_a_payload_names_its_format() -> None:
    text = reason("debezium", {"payload": {**CDC, "source": {"connector": "ydb", "step": 1, "txId": 2}}})
    assert "an envelope of connector ydb" in text and "set `format: ydb`" in text


@pytest.mark.parametrize(
    "connector", ["db2", "cassandra", "vitess", "spanner", "informix", "as400", "cockroachdb", "jdbc"]
)
def test_a_connector_that_is_not_supported_is_named_with_those_that_are(connector: str) -> None:
    what = refused("debezium", pg_row({"id": 1}, connector=connector), GOOD["debezium"].setting())
    assert what.reason == f"EVT008 connector {connector} is not supported; {SUPPORTED}"


@pytest.mark.parametrize("connector", [None, "", 7, ["postgresql"]])
def test_a_source_block_without_a_connector_says_so(connector: Any) -> None:
    what = refused("debezium", pg_row({"id": 1}, connector=connector), GOOD["debezium"].setting())
    assert what.reason == "EVT008 the source block names no connector"


@pytest.mark.parametrize("connector", ["two words", "x" * 65, "{}", "a\nb"])
def test_a_connector_that_is_no_name_is_not_repeated(connector: str) -> None:
    what = refused("debezium", pg_row({"id": 1}, connector=connector), GOOD["debezium"].setting())
    assert what.reason == f"EVT008 connector has no supported name; {SUPPORTED}"


@pytest.mark.parametrize("connector", ["ydb", "ydb_debezium_json"])
def test_the_reason_of_an_envelope_of_ydb_names_its_format(connector: str) -> None:
    what = refused("debezium", pg_row({"id": 1}, connector=connector), GOOD["debezium"].setting())
    assert what.reason == f"EVT008 connector {connector} is not supported; {SUPPORTED}; set `format: ydb`"


@pytest.mark.parametrize("connector", [*POSITIONS, "db2"])
def test_an_envelope_of_a_connector_of_debezium_is_no_record_of_a_feed(connector: str) -> None:
    source = {**debezium.pg(), "connector": connector}
    what = refused(
        "ydb", ydb.message({"payload": {**CDC, "source": source}}, {"payload": {"id": 1}}), ydb.GOLDENS[3].setting()
    )
    assert what.reason == (
        f"EVT008 connector {connector} is not supported; supported: ydb, ydb_debezium_json; Debezium's own connectors "
        "need `format: debezium`"
    )


def test_a_payload_without_a_source_block_is_no_record_of_a_feed() -> None:
    text = reason("ydb", {"payload": {"id": 1}})
    assert text.startswith("EVT006 ") and READS["ydb"] in text


def test_an_envelope_is_no_row() -> None:
    assert unwrapped(debezium.envelope("c", None, {"id": 1}, debezium.pg())).endswith(
        "an envelope with `op` and `source`, and no row: remove `unwrapped: true`"
    )


def test_a_row_may_have_columns_that_are_named_like_members_of_an_envelope() -> None:
    """`op` and `source` are texts there."""
    assert "remove `unwrapped" not in unwrapped({"id": 1, "op": "c", "source": "web"})


def test_rows_of_apicurios_converter_ask_for_the_registry() -> None:
    text = unwrapped({"schemaId": 4, "payload": {"id": 1}})
    assert text.startswith("EVT014 ") and "set `registry` under `source`" in text
