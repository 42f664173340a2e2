"""What holds of every decoder of an event format, over all that are registered."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.connectors import FORMATS
from airflow_cdc_provider.connectors.source import Ignored
from tests.connectors.formats import datastream_goldens, debezium_goldens, ydb_goldens
from tests.connectors.formats.golden import Golden, decoder, records

GOLDENS: dict[str, list[Golden]] = {
    "debezium": debezium_goldens.GOLDENS,
    "ydb": ydb_goldens.GOLDENS,
    "datastream": datastream_goldens.GOLDENS,
}
EVERY = [pytest.param(kind, golden, id=f"{kind}: {golden.name}") for kind, them in GOLDENS.items() for golden in them]


@pytest.mark.parametrize(("kind", "golden"), EVERY)
def test_a_golden_message_means_what_is_written_beside_it(kind: str, golden: Golden) -> None:
    items = decoder(kind, golden.setting()).decode(golden.message)
    found = records(items)
    told = [{name: getattr(record, name) for name in wanted} for record, wanted in zip(found, golden.records)]
    assert told == [dict(wanted) for wanted in golden.records], [record.after for record in found]
    assert len(found) == len(golden.records)
    assert sum(item.count for item in items if isinstance(item, Ignored)) == golden.ignored
