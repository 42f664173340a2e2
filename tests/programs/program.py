"""A program: the life of one replicator as plain data.

A program is a definition and a list of acts: of those who write to the source, of the world around it, and of the
operators. An act that does not apply when its turn comes is passed over, so that every part of a program is a program,
and a failing one can be made shorter.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

POSTGRES, MARIADB, POLL, DEBEZIUM, YDB = "postgres", "mariadb", "poll", "debezium", "ydb"
DELTA, FEATURES, ICEBERG, TO_POSTGRES, TO_MARIADB = "delta", "delta with features", "iceberg", "postgres", "mysql"


class Shown:
    """Only what differs from the defaults."""

    def __repr__(self) -> str:
        values = [(one, getattr(self, one.name)) for one in fields(self)]  # type: ignore[arg-type]
        shown = (f"{one.name}={value!r}" for one, value in values if value != one.default)
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, repr=False)
class Setup(Shown):
    """The definition of the replicator. ``targets``: kinds of them. ``unnamed``: the first target is ``default``.
    ``text_keys``: the key is a text. ``history``: none, scd2 or log; ``beside``: in a table of its own. ``policy``:
    for each kind of schema change. ``secret``: what becomes of the column ``s``: plain, exclude, include (of the other
    columns), hash, mask, truncate or rename. ``filtered``: only rows whose ``a`` is not 3 are copied. ``declared_key``:
    the YAML names ``a`` as the key, which is neither unique nor NOT NULL. ``shards``: both tables are copied into one.
    ``zone``: the timestamps that a poll reads have no zone and the server is west of UTC; the YAML names its zone, or
    it is hidden. ``new``: the YAML has a pattern, and new tables are copied, asked about or ignored; ``dropped``: what
    becomes of the copies of dropped tables. ``partial``: full copies leave out the rows whose ``a`` is 1. ``narrow``:
    the last table is copied into the first target alone. ``cast``: ``a`` is a text in the copy. ``constant``: the copy
    has a column with one value."""

    source: str = POSTGRES
    targets: tuple[str, ...] = (DELTA,)
    unnamed: bool = True
    tables: int = 1
    text_keys: bool = False
    on_delete: str = "hard"
    ignore: tuple[str, ...] = ()
    history: str = "none"
    beside: bool = False
    policy: str = "default"
    sensitive: bool = False
    secret: str = "plain"
    metadata: bool = False
    filtered: bool = False
    declared_key: bool = False
    shards: bool = False
    quarantine: bool = False
    set_null: bool = False
    reconcile: str = "manual"
    mode: str = "initial"
    engine: str = "auto"
    statements: bool = False
    zone: str = ""
    new: str = ""
    dropped: str = ""
    partial: bool = False
    narrow: bool = False
    cast: bool = False
    constant: bool = False


@dataclass(frozen=True, repr=False)
class Act(Shown):
    """Tables, keys, columns, copies and texts are numbers, counted round those that there are."""


@dataclass(frozen=True, repr=False)
class Put(Act):
    """Inserts a row, or updates it."""

    key: int
    value: int
    table: int = 0


@dataclass(frozen=True, repr=False)
class Delete(Act):
    key: int
    table: int = 0


@dataclass(frozen=True, repr=False)
class Move(Act):
    """Gives a row another key."""

    key: int
    to: int
    table: int = 0


@dataclass(frozen=True, repr=False)
class Truncate(Act):
    table: int = 0


@dataclass(frozen=True, repr=False)
class PutBad(Act):
    """Writes a row with a value that no target can represent."""

    key: int
    table: int = 0


@dataclass(frozen=True, repr=False)
class Transaction(Act):
    """All of it at once."""

    writes: tuple[Act, ...]


@dataclass(frozen=True, repr=False)
class AddColumn(Act):
    """``kind``: text, int, or default (an int with a default)."""

    name: int
    kind: str = "text"
    table: int = 0


@dataclass(frozen=True, repr=False)
class DropColumn(Act):
    column: int
    table: int = 0


@dataclass(frozen=True, repr=False)
class RenameColumn(Act):
    column: int
    to: int
    table: int = 0


@dataclass(frozen=True, repr=False)
class RenameTable(Act):
    """Gives a table another name, or its first one again."""

    table: int = 0


@dataclass(frozen=True, repr=False)
class CreateTable(Act):
    """Another table that the pattern of the YAML selects, or one of a dropped table's name."""


@dataclass(frozen=True, repr=False)
class DropTable(Act):
    table: int = 0


@dataclass(frozen=True, repr=False)
class Retype(Act):
    """``kind``: widen (``a`` to a longer integer) or narrow (``v`` to a shorter text)."""

    kind: str
    table: int = 0


@dataclass(frozen=True, repr=False)
class Server(Act):
    """A setting of the server: ``deletes`` or ``root`` (what a publication sends), ``rows`` (its filter), ``identity``
    (of the tables), ``image`` or ``statements`` (what writers put into the binlog), ``filter``
    (the server starts again, and leaves the database out of the binlog). ``on``: as the replicator needs
    it."""

    setting: str
    on: bool = False


@dataclass(frozen=True, repr=False)
class Inherit(Act):
    """A setting of the server that each session of a later run inherits, until ``on`` is False. It changes nothing of
    what is copied."""

    setting: int
    on: bool = True


@dataclass(frozen=True, repr=False)
class LoseLog(Act):
    """The slot or the oldest logs are gone. Of a feed, the messages that were read."""


@dataclass(frozen=True, repr=False)
class SetClock(Act):
    """The clock of the source goes back by three hours, or ``forth``."""

    forth: bool = False


@dataclass(frozen=True, repr=False)
class LoseCopy(Act):
    """The target table is dropped."""

    copy: int = 0


@dataclass(frozen=True, repr=False)
class Outage(Act):
    """A database that is a target is not reachable, until ``on``."""

    on: bool = False


@dataclass(frozen=True, repr=False)
class Run(Act):
    """One run. ``kill``: a failpoint at whose first passage the process of the run dies."""

    kill: str = ""


@dataclass(frozen=True, repr=False)
class Settle(Act):
    """Runs until there is nothing to do; then every copy is compared."""


@dataclass(frozen=True, repr=False)
class AnswerQuestion(Act):
    """``answer``: the number of one of the allowed answers, or its name."""

    answer: int | str
    copy: int = 0


@dataclass(frozen=True, repr=False)
class Command(Act):
    """``kind``: pause, resume, resync, guarded resync (whose deletes are not approved), rewind, verify or repair."""

    kind: str
    copy: int = 0


@dataclass(frozen=True, repr=False)
class Replay(Act):
    """Decides about a record in quarantine. ``kind``: replay, set (with a value that can be represented), discard."""

    kind: str
    copy: int = 0


@dataclass(frozen=True, repr=False)
class AddTarget(Act):
    kind: str


@dataclass(frozen=True, repr=False)
class RemoveTarget(Act):
    pass


@dataclass(frozen=True, repr=False)
class RenameTarget(Act):
    """Gives the last target another name in the YAML."""


@dataclass(frozen=True, repr=False)
class AllowFeatures(Act):
    """The Delta targets may use table features from now on."""


@dataclass(frozen=True, repr=False)
class ChangePolicy(Act):
    policy: str


@dataclass(frozen=True, repr=False)
class Edit(Act):
    """Gives a key of the setup another value in the YAML."""

    key: str
    value: Any


@dataclass(frozen=True, repr=False)
class ListTables(Act):
    """The YAML lists the first ``count`` tables."""

    count: int


@dataclass(frozen=True, repr=False)
class Check(Act):
    """`airflow cdc check`. Where nothing stops a copy, it has no objection."""


@dataclass(frozen=True, repr=False)
class Rename(Act):
    """Gives the replicator another name."""


@dataclass(frozen=True, repr=False)
class MoveStaging(Act):
    pass


@dataclass(frozen=True, repr=False)
class Program(Shown):
    setup: Setup = field(default_factory=Setup)
    acts: tuple[Act, ...] = ()
