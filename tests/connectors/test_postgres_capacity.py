"""How many copies a server has room for, and what is reported without room."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.connectors.sources.postgres import create_slots
from airflow_cdc_provider.connectors.sources.postgres.capacity import Capacity, capacity_problems
from airflow_cdc_provider.core.errors import SourceUnavailable
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.connectors.conftest import Database

pytestmark = pytest.mark.server


@pytest.mark.parametrize(
    ("slots", "senders", "copies", "problems"),
    [
        (10, 10, 8, []),
        (10, 4, 2, []),
        (3, 10, 1, []),
        (2, 10, 1, ["SRC002"]),
        (10, 2, 1, ["SRC003"]),
    ],
    ids=["stock", "few senders", "room for one", "no slot", "no sender"],
)
def test_copies_use_the_senders_and_slots_that_the_stream_and_others_leave(
    slots: int, senders: int, copies: int, problems: list[str]
) -> None:
    capacity = Capacity(max_slots=slots, slots=1, stream_missing=True, max_senders=senders, senders=1)
    assert capacity.copies == copies
    assert [problem.code for problem in capacity_problems(capacity, "here")] == problems


def test_a_copy_waits_for_a_slot_and_reports_when_none_becomes_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddedPostgres({"max_replication_slots": "1", "max_wal_senders": "2"}) as server:
        database = Database(server)
        source, client = database.source, database.source.client
        assert source.copies_at_once() == 1
        for number in range(5):
            with create_slots.exported_snapshot(client, f"copy_{number}"):
                pass
        monkeypatch.setattr(create_slots, "FREE_LIMIT_S", 1)
        with (
            create_slots.exported_snapshot(client, "first"),
            pytest.raises(SourceUnavailable, match=r"SRC026 no replication slot is free.*max_replication_slots"),
            create_slots.exported_snapshot(client, "second"),
        ):
            pass
        database.connection.close()
