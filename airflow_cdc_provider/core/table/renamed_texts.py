"""Stored texts after a replicator was renamed: the command lines in them, such as remedies, name it. Pure."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from airflow_cdc_provider.core.serde import from_plain, to_plain

T = TypeVar("T")


def with_new_name(value: T, former: str, name: str) -> T:
    """The dataclass, with the command lines of ``former`` in all its texts as those of ``name``. Other words that are
    like the name stay."""
    line = re.compile(rf"(\bairflow cdc (?:[a-z]+ ){{1,2}}){re.escape(former)}(?!\w)")

    def renamed(plain: Any) -> Any:
        match plain:
            case str():
                return line.sub(rf"\g<1>{name}", plain)
            case list() | tuple():
                return [renamed(one) for one in plain]
            case dict():
                return {key: renamed(one) for key, one in plain.items()}
        return plain

    return from_plain(type(value), renamed(to_plain(value)))
