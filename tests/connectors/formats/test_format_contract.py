"""The contract of every registered decoder of an event format."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.connectors import FORMATS
from airflow_cdc_provider.connectors.decoders.common.dead_letters import message_of, reread
from airflow_cdc_provider.connectors.decoders.common.message import CopiedTable, DecoderSettings, Item
from airflow_cdc_provider.connectors.source import HoleFound, Ignored
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import TableSchema
from tests.connectors.formats import (
    datastream_goldens,
    debezium_control_goldens,
    debezium_row_goldens,
    debezium_sqlserver_goldens,
    debezium_type_goldens,
    debezium_unwrapped_goldens,
    ydb_goldens,
)
from tests.connectors.formats.changed_values import changed_values, is_implied_by_finer_time
from tests.connectors.formats.golden import Golden, decoder, records
from tests.connectors.formats.invariants import require_valid

GOLDENS: dict[str, list[Golden]] = {
    "debezium": [
        *debezium_row_goldens.ROWS,
        *debezium_sqlserver_goldens.SQL_SERVER,
        *debezium_unwrapped_goldens.UNWRAPPED,
        *debezium_type_goldens.TYPES,
        *debezium_control_goldens.CONTROL,
    ],
    "ydb": ydb_goldens.GOLDENS,
    "datastream": datastream_goldens.GOLDENS,
}
EVERY = [pytest.param(kind, golden, id=f"{kind}: {golden.name}") for kind, them in GOLDENS.items() for golden in them]


@pytest.mark.parametrize(("kind", "golden"), EVERY)
def test_a_golden_message_is_decoded_to_its_expected_records(kind: str, golden: Golden) -> None:
    items = decoder(kind, golden.setting()).decode(golden.message)
    found = records(items)
    compared = [
        {name: getattr(record, name) for name in wanted} for record, wanted in zip(found, golden.records, strict=False)
    ]
    assert compared == [dict(wanted) for wanted in golden.records], [record.after for record in found]
    assert len(found) == len(golden.records)
    assert sum(item.count for item in items if isinstance(item, Ignored)) == golden.ignored


def test_every_registered_format_has_goldens() -> None:
    assert GOLDENS.keys() == FORMATS.keys()


@pytest.mark.parametrize(("kind", "golden"), EVERY)
def test_the_items_of_a_golden_message_are_well_formed(kind: str, golden: Golden) -> None:
    require_valid(golden.message, decoder(kind, golden.setting()).decode(golden.message))


@pytest.mark.parametrize("kind", FORMATS)
def test_a_message_is_decoded_equally_after_any_other_message(kind: str) -> None:
    """One decoder for many messages gives the result of a new one for each, except that it emits a schema once, and
    reports differences of the schemas."""
    for setting in {str(golden.setting()): golden.setting() for golden in GOLDENS[kind]}.values():
        one = decoder(kind, setting)
        for golden in [*GOLDENS[kind], *reversed(GOLDENS[kind])]:
            fresh = decoder(kind, setting).decode(golden.message)
            again = one.decode(golden.message)
            assert without_schemas(again) == without_schemas(fresh), golden.name


def without_schemas(items: list[Item]) -> list[Item]:
    return [item for item in items if not isinstance(item, (TableSchema, HoleFound))]


@pytest.mark.parametrize(("kind", "golden"), EVERY)
def test_no_value_of_a_message_is_lost(kind: str, golden: Golden) -> None:
    """Every changed value changes the result: it is in an image, a column, the position, the body of a control event,
    or in quarantine. A value that a target cannot hold is cut with a warning."""
    original = decoder(kind, golden.setting()).decode(golden.message)
    if records(original) and not records(original)[0].warnings:
        lost = [
            path
            for path, message in changed_values(golden.message)
            if decoder(kind, golden.setting()).decode(message) == original
            and not is_implied_by_finer_time(path, golden.message)
        ]
        assert lost == []


@pytest.mark.parametrize("kind", FORMATS)
def test_an_unreadable_record_can_be_decoded_again(kind: str) -> None:
    """Once the schema is known, an unreadable record is decoded like its message."""
    for golden in GOLDENS[kind]:
        without_table = records(
            decoder(kind, DecoderSettings(1, {"nothing": CopiedTable(TableRule("nothing"))}, golden.options)).decode(
                golden.message
            )
        )
        without = decoder(kind, DecoderSettings(1, None, golden.options))
        with_table = decoder(kind, golden.setting())
        expected = records(with_table.decode(golden.message))
        for record in (*without_table, *records(without.decode(golden.message))):
            if record.op == Operation.UNREADABLE and len(expected) == 1:
                message = message_of(record)
                assert message is not None and reread(record, message, with_table) == expected
