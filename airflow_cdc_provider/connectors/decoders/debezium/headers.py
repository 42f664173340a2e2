"""Message headers that mark the halves of a key change."""

from __future__ import annotations

from airflow_cdc_provider.connectors.decoders.common.message import Message

NEW_KEY, OLD_KEY = "__debezium.newkey", "__debezium.oldkey"


def is_key_change(message: Message) -> bool:
    return any(name in (NEW_KEY, OLD_KEY) for name, _ in message.headers)
