"""A source in which the acts of writers happen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import Source
from tests.programs.source import Column, Table


class World(ABC):
    """``settings``: those of ``Server`` acts that it has; ``shown_by_runs``: those that a run must see while they last.
    ``has_bad``: whether it can have a value that no target can represent; ``truncates``: whether its stream carries a
    TRUNCATE; ``alters``: whether its tables can be altered; ``renames_tables``: whether a replicator can follow a
    renamed table. ``inheritable``: settings that sessions inherit; ``inherited``: the numbers of those that they
    inherit now. ``is_feed``: it cannot be read at any time. ``shows_renames``: its stream shows that a column was
    renamed; ``has_ids``: its catalog does. ``logs_equal_rows``: an UPDATE to the values that a row has is a change.
    ``searches_deletes``: the next run does, if the stream has none."""

    settings: tuple[str, ...] = ()
    shown_by_runs: Collection[str] = ()
    has_bad = True
    truncates = True
    alters = True
    renames_tables = False
    loses_log = False
    is_feed = False
    shows_renames = True
    has_ids = False
    logs_equal_rows = True
    searches_deletes = True
    connection = ConnectionInfo()
    inheritable: Sequence[Any] = ()

    def __init__(self) -> None:
        self.inherited: set[int] = set()

    @property
    @abstractmethod
    def source(self) -> Source: ...

    @abstractmethod
    def table_name(self, name: str) -> str:
        """In the replicator."""

    @abstractmethod
    def create(self, table: Table) -> None:
        """With its rows."""

    def begin(self, tables: list[Table], whole_rows: bool) -> None:  # noqa: B027 - most sources need none
        """After the first tables were created. ``whole_rows``: changes must contain the former row."""

    @abstractmethod
    def put(self, table: Table, key: Any, before: dict[str, Any] | None) -> None:
        """``before``: the row that the write replaces. The table has the row already."""

    @abstractmethod
    def delete(self, table: Table, key: Any, before: dict[str, Any]) -> None: ...

    @abstractmethod
    def move(self, table: Table, key: Any, to: Any, before: dict[str, Any]) -> None: ...

    def truncate(self, table: Table) -> None:
        raise NotImplementedError

    def add(self, table: Table, column: Column) -> None:
        raise NotImplementedError

    def drop(self, table: Table, name: str) -> None:
        raise NotImplementedError

    def rename(self, table: Table, old: str, new: str) -> None:
        raise NotImplementedError

    def announce(self, table: Table) -> None:  # noqa: B027 - most sources carry each table
        """The source carries the changes of a table that was created later."""

    def drop_table(self, table: Table) -> None:
        raise NotImplementedError

    def rename_table(self, table: Table, name: str) -> None:
        raise NotImplementedError

    def retype(self, table: Table, column: Column) -> None:
        raise NotImplementedError

    def set(self, setting: str, on: bool) -> None:
        raise NotImplementedError

    def transaction(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def inheriting(self) -> AbstractContextManager[Any]:
        """Sessions that begin meanwhile have the settings of ``inherited``."""
        return nullcontext()

    def lose_log(self) -> None:
        raise NotImplementedError

    def settled(self) -> None:  # noqa: B027
        """Everything that was written has been read."""

    def set_clock(self, forth: bool) -> None:  # noqa: B027
        """The times of later changes are three hours later, or earlier, than the clock would show."""

    def reveal(self) -> None:  # noqa: B027
        """From now on the definition says what it hid of the source."""

    def wait(self) -> None:  # noqa: B027
        """Until a run sees what was written."""

    def close(self) -> None:
        return
