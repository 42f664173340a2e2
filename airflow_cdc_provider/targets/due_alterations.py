"""The alterations of columns that are due: by the names that the columns of the target have."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from airflow_cdc_provider.core.errors import Blocked
from airflow_cdc_provider.core.table.alterations import Alter, Alteration


def due_at_once(where: str, present: Collection[str], alterations: Sequence[Alteration]) -> list[Alteration]:
    """All that a target executes in one commit. ``present`` and errors as in ``remaining``."""
    present = {name.lower() for name in present}
    for one in _taken(present, [one for one in alterations if _changes_names(one)]):
        raise _name_taken(where, one)
    return [one for one in alterations if not _is_gone(one, present)]


def remaining(where: str, present: set[str], alterations: Sequence[Alteration]) -> list[Alteration]:
    """The alterations that are not done yet, where an attempt was killed after any of them. ``present``: names of the
    columns now, in lower case. Only the names show what is done, so changes of types, which may be repeated, are always
    among them. Raises Blocked (SCH003) if the new name of a column belongs to another one, which was dropped at the
    source."""
    naming = [one for one in alterations if _changes_names(one)]
    for done in range(len(naming), -1, -1):
        if _may_be_done(naming[:done], present) and not any(_taken(present, naming[done:])):
            return [one for one in alterations if one not in naming[:done] and not _is_gone(one, present)]
    raise _name_taken(where, next(_taken(present, naming)))


def _changes_names(one: Alteration) -> bool:
    return one.kind is Alter.DROP or (one.kind is Alter.RENAME and _old(one) != _new(one))


def _old(one: Alteration) -> str:
    return one.column.name.lower()


def _new(one: Alteration) -> str:
    return one.to.name.lower() if one.to else ""


def _is_gone(one: Alteration, present: set[str]) -> bool:
    """Whether a dropped column is not in the target."""
    return one.to is None and _old(one) not in present


def _may_be_done(done: Sequence[Alteration], present: set[str]) -> bool:
    """Whether these alterations, the last ones that were executed, can have led to ``present``."""
    for one in reversed(done):
        if _old(one) in present or (one.to and _new(one) not in present):
            return False
        present = (present | {_old(one)}) - ({_new(one)} if one.to else set())
    return True


def _taken(present: set[str], due: Sequence[Alteration]) -> Iterator[Alteration]:
    """The alterations whose new name another column has when they are executed."""
    for one in due:
        if one.to and _new(one) in present:
            yield one
        present = (present - {_old(one)}) | ({_new(one)} if one.to else set())


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
