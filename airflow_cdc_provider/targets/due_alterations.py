"""The alterations of columns that are due: by the names that the columns of the target have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from airflow_cdc_provider.core.errors import Blocked
from airflow_cdc_provider.core.table.alterations import Alter, Alteration


@dataclass(frozen=True)
class _Named:
    """An alteration with the ids of the names: ``new`` is empty without a new column."""

    one: Alteration
    old: str
    new: str

    @property
    def changes_names(self) -> bool:
        return self.one.kind is Alter.DROP or (self.one.kind is Alter.RENAME and self.old != self.new)

    def is_gone(self, present: Collection[str]) -> bool:
        """Whether a dropped column is not in the target."""
        return self.one.to is None and self.old not in present


def due_at_once(where: str, present: Collection[str], alterations: Sequence[Alteration]) -> list[Alteration]:
    """All that a target executes in one commit. ``present`` and errors as in ``remaining``."""
    named, found = _named(alterations, str.lower), {name.lower() for name in present}
    for one in _taken(found, [one for one in named if one.changes_names]):
        raise _name_taken(where, one.one)
    return [one.one for one in named if not one.is_gone(found)]


def remaining(
    where: str,
    present: Collection[str],
    alterations: Sequence[Alteration],
    column_id: Callable[[str], str] = str.lower,
) -> list[Alteration]:
    """The alterations that are not done yet, where an attempt was killed after any of them. ``present``: names of the
    columns now. ``column_id``: equal for two names that only one column of the target can have. Only the names show
    what is done, so changes of types, which may be repeated, are always among them. Raises Blocked (SCH003) if the new
    name of a column belongs to another one, which was dropped at the source, or if the target lacks the column."""
    every, found = _named(alterations, column_id), set(map(column_id, present))
    naming = [one for one in every if one.changes_names]
    for done in range(len(naming), -1, -1):
        if _may_be_done(naming[:done], found) and not any(_taken(found, naming[done:])):
            for one in naming[done:]:
                if one.new and one.old not in found:
                    raise _no_column(where, one.one)
            return [one.one for one in every if one not in naming[:done] and not one.is_gone(found)]
    raise _name_taken(where, next(_taken(found, naming)).one)


def _named(alterations: Sequence[Alteration], column_id: Callable[[str], str]) -> list[_Named]:
    return [_Named(one, column_id(one.column.name), column_id(one.to.name) if one.to else "") for one in alterations]


def _may_be_done(done: Sequence[_Named], present: set[str]) -> bool:
    """Whether these alterations, the last ones that were executed, can have led to ``present``."""
    for one in reversed(done):
        if one.old in present or (one.new and one.new not in present):
            return False
        present = (present | {one.old}) - {one.new}
    return True


def _taken(present: set[str], due: Sequence[_Named]) -> Iterator[_Named]:
    """The alterations whose new name another column has when they are executed."""
    for one in due:
        if one.new in present:
            yield one
        present = (present - {one.old}) | ({one.new} if one.new else set())


def _name_taken(where: str, one: Alteration) -> Blocked:
    assert one.to is not None
    return Blocked.of(
        "SCH003",
        f"column {one.column.name} cannot be renamed: the target has a column {one.to.name} already",
        where=where,
        found=f"{one.to.name}, which was dropped at the source before",
        do=f"drop column {one.to.name} of the target table if its values are not needed any more, or resync the table",
        data="the table is unchanged; the change log keeps what is not applied",
    )


def _no_column(where: str, one: Alteration) -> Blocked:
    return Blocked.of(
        "SCH003",
        f"column {one.column.name} cannot be renamed: the target does not have it any more",
        where=where,
        found=f"no column {one.column.name}",
        do="give the column its name back, or add it with its values, then resync the table",
        data="the table is unchanged; the change log keeps what is not applied",
    )
