"""The change log on disk: paths, manifests, and the checksums of sealed files.

    <staging>/<replicator>/
        LOG                                       identity and owner of the log
        windows/<n>/<attempt>/<table>/….parquet   change records; files that no manifest lists are garbage
        windows/<n>/MANIFEST                      the window, sealed once, never changed
        schemas/<schema_id>.json                  a table schema
        registry/<id>.json                        a schema of a schema registry; never changed
        control/<table>/<fence>-<window>.json     a control record, written before the commit that names its token
        carry/<table>/<attempt>/….parquet         carry-over
        batches/<table>/<attempt>/                merge-ready rows; temporary
        quarantine/<table>/<id>.json              a bad record with the reason; never changed
        reports/<table>/<time>-<attempt>.parquet  the differences that a comparison found
        decisions/<id>.json                       a decision of an operator
        drops/<table>                             the identity of a copy that is being dropped
        steps/owner=<id>/<run>/<task>/<try>/      input and result of a job, by the state store of the run

Window numbers are padded to ten digits, so that names sort as numbers. Table names are percent-encoded.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import quote, unquote

from airflow_cdc_provider.core.errors import StagingInvalid
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.log.server_orders import ServerOrder
from airflow_cdc_provider.core.log.snapshots import SourceSnapshot
from airflow_cdc_provider.core.serde import from_plain, to_plain

FORMAT = 1
LOG = "LOG"
WINDOWS = "windows"
STEPS = "steps"
OWNER = "owner="
REPORTS = "reports"
CONTROL = "control"
BATCHES = "batches"
DROPS = "drops"
QUARANTINE = "quarantine"

SCHEMA = "schema"
"""Kind of a hole: the columns of the table changed amid a transaction."""

UNLOGGED = "untold"
"""Kind of a hole: the stream announces a change of the table without its content."""

EXPIRED = "expired"
"""Kind of a hole: changes are lost; only the rows of the source have the current state."""

RESTART = "restart"
"""Kind of a hole after which a feed contains the whole table again: a copy that starts empty at the end of that window
and applies the following windows is complete."""

AUDIT, RELOAD = "audit", "reload"
REQUESTED = frozenset({AUDIT, RELOAD})
"""Kinds of holes without a loss: the definition requests a comparison of the table's keys (audit), or the table can
only be copied as a whole (reload). They are repaired without a decision of an operator."""


LONGEST_FOLDER = 200
"""Characters; a file system allows 255 in a name."""

SHORTENED = "%~"
"""Before the hash of a shortened name. No other name contains it."""


def table_folder(table: str) -> str:
    """One name of a folder per table. A store hides a name that begins with a dot, and two dots lead out of it."""
    name = quote(table, safe="")
    name = f"%2E{name[1:]}" if name.startswith(".") else name
    if len(name) <= LONGEST_FOLDER:
        return name
    ending = SHORTENED + hashlib.sha256(table.encode()).hexdigest()
    return name[: LONGEST_FOLDER - len(ending)] + ending


def table_of_folder(folder: str) -> str | None:
    """None if the name is shortened: then only the files in the folder name the table."""
    return None if SHORTENED in folder else unquote(folder)


def window_folder(number: int) -> str:
    return f"{WINDOWS}/{number:010d}"


def manifest_path(number: int) -> str:
    return f"{window_folder(number)}/MANIFEST"


def report_folder(table: str) -> str:
    return f"{REPORTS}/{table_folder(table)}"


def attempt_folder(number: int, attempt: str) -> str:
    return f"{window_folder(number)}/{attempt}"


def drop_mark_path(table: str) -> str:
    return f"{DROPS}/{table_folder(table)}"


def schema_path(schema_id: str) -> str:
    return f"schemas/{schema_id}.json"


def disclosed_path(table: str) -> str:
    return f"disclosed/{table_folder(table)}.json"


def control_folder(table: str) -> str:
    return f"{CONTROL}/{table_folder(table)}"


def control_path(table: str, fence: int, window: int) -> str:
    return f"{control_folder(table)}/{fence:010d}-{window:010d}.json"


def carry_folder(table: str, attempt: str = "") -> str:
    return f"carry/{table_folder(table)}/{attempt}".removesuffix("/")


def quarantine_folder(table: str) -> str:
    return f"{QUARANTINE}/{table_folder(table)}"


def quarantine_path(table: str, record_id: str) -> str:
    return f"{quarantine_folder(table)}/{record_id}.json"


def batch_folder(table: str, attempt: str) -> str:
    return f"{BATCHES}/{table_folder(table)}/{attempt}"


def runs_folder(owner: str) -> str:
    """Of the runs of one state store: a second Airflow with the same YAML gives its runs the same ids. A run id cannot
    have this name, since it is percent-encoded."""
    return f"{STEPS}/{OWNER}{owner}"


def run_folder(runs: str, run_id: str) -> str:
    """``runs``: the folder of the runs."""
    return f"{runs}/{quote(run_id, safe='')}"


def seal(body: dict[str, Any]) -> bytes:
    """One line of JSON and one line with its SHA-256: the format of LOG, MANIFEST and control files."""
    text = json.dumps({"format": FORMAT, **body}, sort_keys=True, ensure_ascii=False)
    return f"{text}\nsha256 {hashlib.sha256(text.encode()).hexdigest()}\n".encode()


def unseal(content: bytes, where: str) -> dict[str, Any]:
    """The body of a sealed file. Raises StagingInvalid (STG002) if the checksum or the format is wrong."""
    text, _, tail = content.decode("utf-8", errors="replace").partition("\n")
    expected = f"sha256 {hashlib.sha256(text.encode()).hexdigest()}\n"
    if tail != expected:
        raise _invalid("the file does not match its checksum", where, tail.strip()[:80] or "no checksum line")
    body: dict[str, Any] = json.loads(text)
    if body.pop("format", None) != FORMAT:
        raise _invalid("the file has another format", where, text[:40])
    return body


class SealedFile:
    """A dataclass that is stored as a sealed file."""

    def encode(self) -> bytes:
        return seal(to_plain(self))

    @classmethod
    def decode(cls, content: bytes, where: str) -> Self:
        return from_plain(cls, unseal(content, where))


def _invalid(what: str, where: str, found: str) -> StagingInvalid:
    return StagingInvalid.of(
        "STG002",
        what,
        where=where,
        found=found,
        allowed=f"format {FORMAT} with a matching SHA-256 line",
        do="restore the file from a backup of staging, or resync the tables",
    )


@dataclass(frozen=True)
class DataFile:
    """One Parquet file of a window. ``path`` is relative to the replicator's folder."""

    path: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Hole:
    """A range of the stream that cannot be read. ``kind``: gap, overflow, schema, or one of the constants of this
    module. Empty ``ids``: the whole table. ``order_key``: a copy with this or a higher floor repairs the hole; empty if
    its position in the stream is unknown. ``copies``: those of the table that have the hole; empty if all have it."""

    kind: str
    table: str
    order_key: str
    ids: tuple[str, ...] = ()
    position: dict[str, str] = field(default_factory=dict)
    detail: str = ""
    copies: tuple[str, ...] = ()

    @property
    def cause(self) -> str:
        """The kind, in words."""
        return "not logged" if self.kind == UNLOGGED else self.kind


@dataclass(frozen=True)
class TableSlice:
    """The part of a window that belongs to one table. A captured table is listed even without records.
    ``log_sha256``: the fingerprint of the settings that its records were read by; empty if that is unknown. ``cut``:
    why it ends before changes that the source had when the window began; empty if it does not, or if that is unknown.
    """

    definition_sha256: str
    schema_ids: tuple[str, ...] = ()
    files: tuple[DataFile, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    log_sha256: str = ""
    cut: str = ""

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)


@dataclass(frozen=True)
class Manifest(SealedFile):
    """A sealed window. Times are UTC in ISO 8601 format; ``commit_ts_*`` are None if no record has a commit time.
    ``resolved``: the last progress mark of each channel. ``watermark``: all changes committed before it are in this
    window or an earlier one; None if a channel has no progress mark. ``snapshots``: the full snapshots that the stream
    has contained in this epoch. ``orders``: the servers whose changes it has contained."""

    log_id: str
    window: int
    epoch: int
    lo: dict[str, str]
    hi: dict[str, str]
    previous_sha256: str
    attempt: str
    sealed_at: str
    tables: dict[str, TableSlice]
    commit_ts_min: str | None = None
    commit_ts_max: str | None = None
    holes: tuple[Hole, ...] = ()
    ignored: int = 0
    resolved: dict[str, str] = field(default_factory=dict)
    watermark: str | None = None
    snapshots: tuple[SourceSnapshot, ...] = ()
    orders: tuple[ServerOrder, ...] = ()


def position_text(position: Position) -> str:
    """A position as text for messages: ``slot 0/16B3748``, sorted by channel."""
    return ", ".join(f"{channel} {native}" for channel, native in sorted(position.items()))
