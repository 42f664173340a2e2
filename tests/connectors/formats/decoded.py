"""The records that a decoder makes of messages, one by one and together."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.connectors.decoders.common.message import DecodesMany, Message
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from tests.blocks import unpacked


def records_of(decoder: object, sent: Sequence[Message], together: bool) -> list[ChangeRecord]:
    """Together: in blocks, in the form of messages before."""
    assert isinstance(decoder, DecodesMany)
    if not together:
        items = [item for one in sent for item in decoder.decode(one)]
    else:
        list(decoder.decode_many(sent))
        items = list(decoder.decode_many(sent))
        assert any(isinstance(item, Block) for item in items)
    return [item for item in unpacked(items) if isinstance(item, ChangeRecord)]
