"""Messages that cannot be decoded: kept in full as ``unreadable`` records, and decoded again on request. Pure."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.message import Decoder, Message
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.log.positions import epoch_prefix
from airflow_cdc_provider.core.log.quarantine import UndecodedRecord, undecoded
from airflow_cdc_provider.core.serde import to_plain

NOT_JSON, NOT_EXACT, TOO_DEEP, TOO_LARGE, NO_KEY, UNKNOWN_OPERATION, CONTRADICTION = (
    f"EVT00{number}" for number in range(1, 8)
)
NO_ORDER, WRONG_TIME, WRONG_NUMBER, WRONG_TEXT, WRONG_VALUE, NO_SCHEMA, UNREPRESENTABLE = (
    "EVT008",
    "EVT009",
    "EVT010",
    "EVT011",
    "EVT015",
    "EVT014",
    "EVT016",
)
NOT_SENT = "EVT020"
REMEDY = (
    "copy the column as text (`columns: {cast: …}`), or exclude it, or, if it is not part of the key, store NULL and "
    "keep the text in a separate column (`on_unrepresentable: set_null`)"
)

BY_LINE = "the event has no position that orders it, and the number of its line or row does not order different files"


class DecodeError(ValueError):
    """Why a message cannot be decoded. The text contains no value of the message: it appears in logs and quarantine."""

    def __init__(self, code: str, what: str) -> None:
        super().__init__(f"{code} {what}")


def required_order(offset: int | None) -> int:
    """Of a message whose position in its source does not order it. Raises DecodeError."""
    if offset is None:
        raise DecodeError(NO_ORDER, BY_LINE)
    return offset


class UnrepresentableValue(DecodeError):
    """A value that no target type can store. ``text``: the value as text, in the source's notation."""

    def __init__(self, what: str, text: str) -> None:
        super().__init__(UNREPRESENTABLE, f"{what}, which no target type can store: {REMEDY}")
        self.text = text


@dataclass(frozen=True)
class PartialDecode:
    """What was decoded of a message before decoding failed. ``key``: canonical; set only if the position is known,
    since later changes of the key cannot be determined otherwise. ``tail``: the order key without the epoch, empty if
    unknown; ``width``: its number of digits."""

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


def undecoded_record(codec: str, epoch: int, message: Message, reason: str, decoded: PartialDecode) -> ChangeRecord:
    """Without a known position, the record is ordered last, so that it never counts as applied."""
    tail = decoded.tail or f"{message.offset:016x}".rjust(decoded.width, "f")
    order_key = f"{epoch_prefix(epoch)}{tail}"
    content = UndecodedRecord(
        codec,
        b64encode(message.whole_value or b"").decode("ascii"),
        reason,
        b64encode(context_of(message)).decode("ascii"),
        decoded.op,
        dict(decoded.known),
        decoded.columns,
    )
    return ChangeRecord(
        decoded.table,
        Operation.UNREADABLE,
        order_key,
        decoded.schema_id,
        key=decoded.key,
        after=canonical(to_plain(content)),
        phase=decoded.phase,
        link_id=decoded.link_id,
        position=decoded.position or message_position(message),
        event_id=f"{message.channel}:{message.offset}",
    )


def message_position(message: Message) -> str:
    return canonical({"channel": message.channel, "offset": message.offset})


def context_of(message: Message) -> bytes:
    """The message without its value, as JSON: a decoder also requires key, headers and topic."""
    key = message.whole_key
    context = {
        "key": None if key is None else b64encode(key).decode("ascii"),
        "empty": message.value is None,
        "headers": [
            [name, None if text is None else b64encode(text).decode("ascii")] for name, text in message.headers
        ],
        "topic": message.topic,
        "channel": message.channel,
        "offset": message.offset,
        **({"by_line": True} if message.by_line else {}),
    }
    return json.dumps(context).encode()


def message_of(record: ChangeRecord) -> Message | None:
    """The message that an ``unreadable`` record contains; None for other records."""
    content = undecoded(record)
    if content is None or not content.context:
        return None
    context = json.loads(b64decode(content.context))
    return Message(
        None if context["empty"] else b64decode(content.raw),
        None if context["key"] is None else b64decode(context["key"]),
        tuple((name, None if text is None else b64decode(text)) for name, text in context["headers"]),
        context["topic"],
        context["channel"],
        context["offset"],
        by_line=context.get("by_line", False),
    )


def reread(record: ChangeRecord, message: Message, decoder: Decoder) -> list[ChangeRecord]:
    """See ``SourceConnector.reread``. ``message``: that of the record. ``decoder``: one that has the schema to decode
    with."""
    content = undecoded(record)
    if content is None or content.codec != decoder.codec:
        return [record]
    records = [item for item in decoder.decode(message) if isinstance(item, ChangeRecord)]
    if any(decoded.op == Operation.UNREADABLE for decoded in records):
        return [record]
    return [replace(decoded, event_id=decoded.event_id or record.event_id) for decoded in records]
