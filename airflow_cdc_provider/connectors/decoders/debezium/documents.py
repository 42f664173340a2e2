"""MongoDB's documents: extended JSON as text, whole or as what of it changed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from airflow_cdc_provider.connectors.decoders.common import exact_json, extended_json
from airflow_cdc_provider.connectors.decoders.common.dead_letters import CONTRADICTION, NO_KEY, WRONG_VALUE, DecodeError
from airflow_cdc_provider.connectors.decoders.common.images import RowImage
from airflow_cdc_provider.core.log.change_records import Operation


class DocumentChange(NamedTuple):
    key_before: str | None
    key: str | None
    before: RowImage | None
    after: RowImage | None
    refetch: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def read(operation: Operation, payload: Mapping[str, Any], key: Mapping[str, Any]) -> DocumentChange:
    """A document is the row (``_id``, ``document``), both as extended JSON. An update without the document must be
    fetched: what changed in it (``updateDescription``) stands in the position. Where it was looked up when the event
    was read, it may be newer than the event."""
    told = key.get("id")
    if not isinstance(told, str):
        raise DecodeError(NO_KEY, "the key has no id")
    member = encode_basestring(told)
    canonical_key = f"[{member}]"
    before, after = _image(member, payload.get("before")), _image(member, payload.get("after"))
    if operation is Operation.DELETE:
        return DocumentChange(canonical_key, None, before, None)
    if operation is not Operation.UPDATE:
        if after is None:
            raise DecodeError(CONTRADICTION, f"an event {operation} without a document after it")
        return DocumentChange(None, canonical_key, None, after)
    if after is None:
        if payload.get("updateDescription") is None:
            raise DecodeError(CONTRADICTION, "an update that tells neither a document nor what changed in it")
        partial = RowImage(f'{{"_id":{member}}}', False)
        return DocumentChange(canonical_key, canonical_key, before, partial, ("*",))
    later = ("later_image",) if payload.get("updateDescription") is not None else ()
    return DocumentChange(canonical_key, canonical_key, before, after, (), later)


def _image(member: str, document: Any) -> RowImage | None:
    if document is None:
        return None
    if not isinstance(document, str):
        raise DecodeError(WRONG_VALUE, "a document that is no text")
    document = extended_json.as_json(document)
    if not isinstance(exact_json.parse(document.encode()), dict):
        raise DecodeError(WRONG_VALUE, "a document that is none")
    return RowImage(f'{{"_id":{member},"document":{encode_basestring(document)}}}', True)
