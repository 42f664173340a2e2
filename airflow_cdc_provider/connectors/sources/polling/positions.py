"""Places of a table that is polled, and the order keys of its records.

    order key = epoch 8 · round 16 · rank in the round 16

All digits are hex. A round is one reading of an interval, or of what is left of one. Its number is the source's clock
in microseconds when the reading was planned, made to grow where that clock does not: so rounds of a stream that was
begun anew are above all before, and a copy can be placed among them. Timestamps of rows order nothing: what is read
later is newer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from airflow_cdc_provider.core.errors import PositionLost, Problem
from airflow_cdc_provider.core.log.positions import Position, epoch_prefix

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_RANK = "f" * 16


@dataclass(frozen=True)
class After:
    """The last row of a page. ``stamp`` is None among the rows without timestamp, which come last; ``key`` is its
    canonical key, empty where the page held every row up to ``stamp``."""

    stamp: datetime | None
    key: str


@dataclass(frozen=True)
class PollPosition:
    """Behind the reading number ``round``. Everything up to ``upto`` was read, or was to be read: where ``after`` is
    set, the rows behind it are still open. ``audited`` is when the source was last asked to be compared as a whole.
    ``schema`` is the id of the schema that the table had in the catalogue then; empty where the reading took none down.
    """

    round: int
    upto: datetime
    audited: datetime
    after: After | None = None
    schema: str = ""


def text_of(place: PollPosition) -> str:
    told: dict[str, object] = {
        "round": place.round,
        "upto": written(place.upto),
        "audited": written(place.audited),
    }
    if place.after:
        told["after"] = [place.after.stamp and written(place.after.stamp), place.after.key]
    if place.schema:
        told["schema"] = place.schema
    return json.dumps(told, ensure_ascii=False)


def poll_position(text: str) -> PollPosition:
    told = json.loads(text)
    after = None
    if "after" in told:
        stamp, key = told["after"]
        after = After(stamp and datetime.fromisoformat(stamp), key)
    upto, audited = datetime.fromisoformat(told["upto"]), datetime.fromisoformat(told["audited"])
    return PollPosition(told["round"], upto, audited, after, told.get("schema", ""))


def poll_positions(position: Position, tables: Sequence[str]) -> dict[str, PollPosition]:
    """The place of each table. One that came later starts where the first of the others stands: no copy of it is older
    than the window that ended there. Raises PositionLost (SRC013) where the position is that of another kind of source.
    """
    known = {table: _place(table, position[table]) for table in tables if table in position}
    others = list(known.values()) or [_place(table, text) for table, text in position.items()]
    if not others:
        raise _no_place(", ".join(tables), "no place at all")
    first = min(others, key=lambda place: place.upto)
    start = PollPosition(max(place.round for place in others), first.upto, first.audited)
    return {table: known.get(table, start) for table in tables}


def position_of(places: Mapping[str, PollPosition]) -> dict[str, str]:
    return {table: text_of(place) for table, place in places.items()}


def order_key(epoch: int, number: int, rank: int) -> str:
    return f"{epoch_prefix(epoch)}{number:016x}{rank:016x}"


def floor_key(epoch: int, number: int) -> str:
    """Order key of a copy that was begun when ``number`` was the round, or the source's clock: it holds whatever was
    read in rounds planned before. What was committed since is in the interval that follows them."""
    return f"{epoch_prefix(epoch)}{number:016x}{LAST_RANK}"


def microseconds(moment: datetime) -> int:
    since = moment - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def moment_of(number: int) -> datetime:
    """When a round was planned, by the source's clock."""
    return EPOCH + timedelta(microseconds=number)


def written(moment: datetime) -> str:
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"


def _place(table: str, text: str) -> PollPosition:
    try:
        return poll_position(text)
    except (ValueError, KeyError, TypeError) as error:
        raise _no_place(table, text[:80]) from error


def _no_place(table: str, found: str) -> PositionLost:
    return PositionLost(
        Problem(
            "SRC013",
            "our position is none of a source of timestamp windows",
            where=table,
            found=found,
            allowed="a place for each table",
            data="the target tables stand at their cursors; changes after them are not in the log",
            do="name the old kind of source again, or copy the tables anew: airflow cdc resync",
        )
    )
