"""Values that a column's type has in Spark and Arrow, and that the type of a target lacks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow

UUID = "(?i)^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"


class Allowed(StrEnum):
    """What the target's type requires of a value."""

    NO_ZERO_CHARACTER = "no character U+0000"
    UUID = "the form of a UUID"
    FINITE = "a finite number"
    CHARACTERS = "at most so many characters"
    BYTES = "at most so many bytes"
    TEXT_BYTES = "at most so many bytes, and no character U+0000"


@dataclass(frozen=True)
class Restriction:
    """``limit``: of characters or bytes."""

    allowed: Allowed
    limit: int = 0

    def __str__(self) -> str:
        return self.allowed.replace("so many", f"{self.limit:,}")

    def refusal_sql(self, value: str) -> str:
        """A Spark SQL condition for a value that is not allowed. ``value``: Spark SQL."""
        match self.allowed:
            case Allowed.NO_ZERO_CHARACTER:
                return f"instr({value}, char(0)) > 0"
            case Allowed.UUID:
                return f"NOT {value} RLIKE '{UUID}'"
            case Allowed.FINITE:
                return f"isnan({value}) OR abs({value}) = double('Infinity')"
            case Allowed.CHARACTERS:
                return f"char_length({value}) > {self.limit}"
            case Allowed.BYTES:
                return f"octet_length({value}) > {self.limit}"
            case Allowed.TEXT_BYTES:
                return f"octet_length({value}) > {self.limit} OR instr({value}, char(0)) > 0"

    def refuses_any(self, values: pyarrow.ChunkedArray) -> bool:
        import pyarrow.compute as pc

        match self.allowed:
            case Allowed.NO_ZERO_CHARACTER:
                refused = pc.match_substring(values, "\0")
            case Allowed.UUID:
                refused = pc.invert(pc.match_substring_regex(values, UUID))
            case Allowed.FINITE:
                refused = pc.invert(pc.is_finite(values))
            case Allowed.CHARACTERS:
                refused = pc.greater(pc.utf8_length(values), self.limit)
            case Allowed.BYTES:
                refused = pc.greater(pc.binary_length(values), self.limit)
            case Allowed.TEXT_BYTES:
                too_long = pc.greater(pc.binary_length(values), self.limit)
                refused = pc.or_(too_long, pc.match_substring(values, "\0"))
        return bool(pc.any(refused).as_py())
