"""Where a row moved to or came from, as the headers of the two halves tell it."""

from __future__ import annotations

from airflow_cdc_provider.connectors.decoders.common.message import Message

NEW_KEY, OLD_KEY = "__debezium.newkey", "__debezium.oldkey"


def moved(message: Message) -> bool:
    return any(name in (NEW_KEY, OLD_KEY) for name, _ in message.headers)
