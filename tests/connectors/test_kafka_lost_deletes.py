"""Deletes that compaction removed, and the tombstones that show it."""

from __future__ import annotations

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.transports.kafka.lost_deletes import LostDeletes
from airflow_cdc_provider.connectors.transports.kafka.positions import OffsetRange


def found(start: int, *messages: tuple[int, str, bool]) -> list[str]:
    """``messages``: offset, key, and whether it has a value."""
    lost = LostDeletes([OffsetRange("t", 0, start, 99)])
    sent = [Message(b"{}" if value else None, key.encode(), (), "t", "t/0", offset) for offset, key, value in messages]
    assert list(lost.watch(sent)) == sent
    return [detail.partition(":")[0] for detail in lost.topics.values()]


def test_a_tombstone_after_the_delete_of_its_key_is_no_loss() -> None:
    assert found(5, (5, "a", True), (6, "a", False)) == []
    assert found(6, (6, "a", False)) == [], "the delete was in the last window"
    assert found(5, (5, "b", True), (6, "a", False)) == [], "nothing was removed between them"


def test_the_marker_of_a_transaction_between_both_is_no_loss() -> None:
    assert found(5, (5, "a", True), (7, "a", False)) == []


def test_a_tombstone_without_its_delete_is_a_loss() -> None:
    lost = "t/0 has the tombstone at offset 8, and not the delete before it"
    assert found(5, (5, "b", True), (8, "a", False)) == [lost]
    assert found(7, (8, "a", False)) == [lost]
    assert found(5, (5, "a", True), (6, "b", True), (8, "a", False), (20, "c", False)) == [lost]


def test_a_partition_that_is_read_for_the_first_time_has_lost_nothing() -> None:
    assert found(0, (5, "b", True), (8, "a", False), (20, "c", False)) == []
