"""MongoDB documents: extended JSON as text, either whole documents or changed fields. Pure."""

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
    """A document is the row (``_id``, ``document``), both as extended JSON. If an update lacks the document, the row
    must be fetched; ``updateDescription`` is kept in the position. A document that the connector looked up may be newer
    than the event."""
    id_ = key.get("id")
    if not isinstance(id_, str):
        raise DecodeError(NO_KEY, "the key has no id")
    id_json = encode_basestring(id_)
    canonical_key = f"[{id_json}]"
    before, after = _image(id_json, payload.get("before")), _image(id_json, payload.get("after"))
    if operation is Operation.DELETE:
        return DocumentChange(canonical_key, None, before, None)
    if operation is not Operation.UPDATE:
        if after is None:
            raise DecodeError(CONTRADICTION, f"{operation} without a document in after")
        return DocumentChange(None, canonical_key, None, after)
    if after is None:
        if payload.get("updateDescription") is None:
            raise DecodeError(CONTRADICTION, "update with neither after nor updateDescription")
        partial = RowImage(f'{{"_id":{id_json}}}', False)
        return DocumentChange(canonical_key, canonical_key, before, partial, ("*",))
    warnings = ("later_image",) if payload.get("updateDescription") is not None else ()
    return DocumentChange(canonical_key, canonical_key, before, after, (), warnings)


def _image(id_json: str, document: Any) -> RowImage | None:
    if document is None:
        return None
    if not isinstance(document, str):
        raise DecodeError(WRONG_VALUE, "a document that is not a string")
    document = extended_json.as_json(document)
    if not isinstance(exact_json.parse(document.encode()), dict):
        raise DecodeError(WRONG_VALUE, "a document that is not an object")
    return RowImage(f'{{"_id":{id_json},"document":{encode_basestring(document)}}}', True)
