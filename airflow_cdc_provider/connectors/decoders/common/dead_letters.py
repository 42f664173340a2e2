"""Messages that cannot be understood, kept whole and read once more. Pure."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.message import Decoder, Message
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.log.positions import epoch_prefix
from airflow_cdc_provider.core.log.quarantine import UndecodedRecord as Told
from airflow_cdc_provider.core.log.quarantine import undecoded
from airflow_cdc_provider.core.serde import to_plain

NOT_JSON, NOT_EXACT, TOO_DEEP, TOO_LARGE, NO_KEY, UNKNOWN_OPERATION, CONTRADICTION = (
    f"EVT00{number}" for number in range(1, 8)
)
NO_ORDER, WRONG_TIME, WRONG_NUMBER, WRONG_TEXT, WRONG_VALUE, NO_SCHEMA, NOT_HELD = (
    "EVT008",
    "EVT009",
    "EVT010",
    "EVT011",
    "EVT015",
    "EVT014",
    "EVT016",
)
NOT_SENT = "EVT020"
DO = (
    "copy the column as text (`columns: {cast: …}`), or as NULL with its text beside it where it is no part of the key "
    "(`on_unrepresentable: set_null`), or leave it out"
)


class DecodeError(ValueError):
    """Says what is wrong with a message, without a value of it: the words go into logs and quarantine."""

    def __init__(self, code: str, what: str) -> None:
        super().__init__(f"{code} {what}")


class NotHeld(DecodeError):
    """A value that no target's type has. Nothing stands for it. ``text``: as the source spells it."""

    def __init__(self, what: str, text: str) -> None:
        super().__init__(NOT_HELD, f"{what}, which no target's type has: {DO}")
        self.text = text


@dataclass(frozen=True)
class Understood:
    """As much of a message as was understood before it could not be. ``key``: canonical, and only where the place is
    known, too: else nobody can tell what is behind it. ``tail``: the order key behind the epoch, empty where it is not
    known; ``width``: how many digits it has."""

    table: str = ""
    op: str = ""
    key: str | None = None
    known: Mapping[str, Any] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    schema_id: str = ""
    position: str = ""
    tail: str = ""
    width: int = 16
    phase: int | None = None
    link_id: str | None = None


def undecoded_message(codec: str, epoch: int, message: Message, reason: str, understood: Understood) -> ChangeRecord:
    """Without a place in the order it stands behind everything that is known: it must not be taken for applied."""
    tail = understood.tail or f"{message.offset:016x}".rjust(understood.width, "f")
    order_key = f"{epoch_prefix(epoch)}{tail}"
    what = Told(
        codec,
        b64encode(message.value or b"").decode("ascii"),
        reason,
        b64encode(context_of(message)).decode("ascii"),
        understood.op,
        dict(understood.known),
        understood.columns,
    )
    return ChangeRecord(
        understood.table,
        Operation.UNREADABLE,
        order_key,
        understood.schema_id,
        key=understood.key,
        after=canonical(to_plain(what)),
        phase=understood.phase,
        link_id=understood.link_id,
        position=understood.position or message_position(message),
        event_id=f"{message.channel}:{message.offset}",
    )


def message_position(message: Message) -> str:
    return canonical({"channel": message.channel, "offset": message.offset})


def context_of(message: Message) -> bytes:
    """All of a message but its value, as JSON: no decoder can do without key, headers and topic."""
    told_of = {
        "key": None if message.key is None else b64encode(message.key).decode("ascii"),
        "empty": message.value is None,
        "headers": [
            [name, None if text is None else b64encode(text).decode("ascii")] for name, text in message.headers
        ],
        "topic": message.topic,
        "channel": message.channel,
        "offset": message.offset,
    }
    return json.dumps(told_of).encode()


def message_of(record: ChangeRecord) -> Message | None:
    """The message that an ``unreadable`` record keeps; None where the record is no such."""
    what = undecoded(record)
    if what is None or not what.context:
        return None
    about = json.loads(b64decode(what.context))
    return Message(
        None if about["empty"] else b64decode(what.raw),
        None if about["key"] is None else b64decode(about["key"]),
        tuple((name, None if text is None else b64decode(text)) for name, text in about["headers"]),
        about["topic"],
        about["channel"],
        about["offset"],
    )


def reread(record: ChangeRecord, codec: str, decoder: Decoder) -> list[ChangeRecord]:
    """See ``SourceConnector.reread``. The ``decoder`` is one that knows the schema to read with."""
    what, message = undecoded(record), message_of(record)
    if what is None or message is None or what.codec != codec:
        return [record]
    records = [item for item in decoder.decode(message) if isinstance(item, ChangeRecord)]
    if any(one.op == Operation.UNREADABLE for one in records):
        return [record]
    return [replace(one, event_id=one.event_id or record.event_id) for one in records]
