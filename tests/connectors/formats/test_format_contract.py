"""What holds of every decoder of an event format, over all that are registered."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.connectors import FORMATS
from airflow_cdc_provider.connectors.decoders.common.dead_letters import reread
from airflow_cdc_provider.connectors.decoders.common.message import CopiedTable, DecoderSettings, Item
from airflow_cdc_provider.connectors.source import Ignored
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import TableSchema
from tests.connectors.formats import (
    datastream_goldens,
    debezium_control_goldens,
    debezium_row_goldens,
    debezium_type_goldens,
    debezium_unwrapped_goldens,
    ydb_goldens,
)
from tests.connectors.formats.changed_values import changed_values, is_told_by_another
from tests.connectors.formats.golden import Golden, decoder, records
from tests.connectors.formats.judging import judge

GOLDENS: dict[str, list[Golden]] = {
    "debezium": [
        *debezium_row_goldens.ROWS,
        *debezium_unwrapped_goldens.UNWRAPPED,
        *debezium_type_goldens.TYPES,
        *debezium_control_goldens.CONTROL,
    ],
    "ydb": ydb_goldens.GOLDENS,
    "datastream": datastream_goldens.GOLDENS,
}
EVERY = [pytest.param(kind, golden, id=f"{kind}: {golden.name}") for kind, them in GOLDENS.items() for golden in them]


@pytest.mark.parametrize(("kind", "golden"), EVERY)
def test_a_golden_message_means_what_is_written_beside_it(kind: str, golden: Golden) -> None:
    items = decoder(kind, golden.setting()).decode(golden.message)
    found = records(items)
    told = [
        {name: getattr(record, name) for name in wanted} for record, wanted in zip(found, golden.records, strict=False)
    ]
    assert told == [dict(wanted) for wanted in golden.records], [record.after for record in found]
    assert len(found) == len(golden.records)
    assert sum(item.count for item in items if isinstance(item, Ignored)) == golden.ignored


def test_every_registered_format_has_goldens() -> None:
    assert GOLDENS.keys() == FORMATS.keys()


@pytest.mark.parametrize(("kind", "golden"), EVERY)
def test_what_a_golden_says_can_be_taken_at_its_word(kind: str, golden: Golden) -> None:
    judge(golden.message, decoder(kind, golden.setting()).decode(golden.message))


@pytest.mark.parametrize("kind", FORMATS)
def test_a_message_means_the_same_whatever_came_before(kind: str) -> None:
    """One decoder for many messages answers as a new one for each; schemas alone are told once."""
    for setting in {str(golden.setting()): golden.setting() for golden in GOLDENS[kind]}.values():
        one = decoder(kind, setting)
        for golden in [*GOLDENS[kind], *reversed(GOLDENS[kind])]:
            fresh = decoder(kind, setting).decode(golden.message)
            again = one.decode(golden.message)
            assert _untold(again) == _untold(fresh), golden.name


def _untold(items: list[Item]) -> list[Item]:
    return [item for item in items if not isinstance(item, TableSchema)]


@pytest.mark.parametrize(("kind", "golden"), EVERY)
def test_no_value_of_a_message_is_lost(kind: str, golden: Golden) -> None:
    """Whichever value is another, what is told is another: it ends in an image, a column, the position, the body of a
    control event, or in quarantine. What a target cannot hold is cut, and then the record says so."""
    told = decoder(kind, golden.setting()).decode(golden.message)
    if records(told) and not records(told)[0].warnings:
        unheard = [
            path
            for path, message in changed_values(golden.message)
            if decoder(kind, golden.setting()).decode(message) == told and not is_told_by_another(path, golden.message)
        ]
        assert unheard == []


@pytest.mark.parametrize("kind", FORMATS)
def test_what_is_put_aside_can_be_read_once_more(kind: str) -> None:
    """With the schema known at last, an unreadable record is what the message had meant."""
    for golden in GOLDENS[kind]:
        blind = records(
            decoder(kind, DecoderSettings(1, {"nothing": CopiedTable(TableRule("nothing"))}, golden.options)).decode(
                golden.message
            )
        )
        without = decoder(kind, DecoderSettings(1, None, golden.options))
        knowing = decoder(kind, golden.setting())
        meant = records(knowing.decode(golden.message))
        for record in (*blind, *records(without.decode(golden.message))):
            if record.op == Operation.UNREADABLE and len(meant) == 1:
                assert reread(record, without.codec, knowing) == meant
