"""Questions that an operator answers. A table with a schema change waits in the state ``blocked`` for the answer; one
with rows that differ from the source goes on, and the question is in its row of the state store.

The question is part of the table's state in its control record. An answer is a decision file in staging. It names the
question, so it has an effect only as long as this question is open.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

QUESTION_RUN = "question__"
"""The prefix of the id of the DAG run that asks a question; the question's id follows."""
ASK_TASK = "ask"
"""The task of that run that waits for the answer."""


class Answer(StrEnum):
    """``apply``: alter the target as proposed. ``rename``: the dropped columns were renamed to the added ones.
    ``ignore``: do not copy the changed columns any more, or keep the rows that a TRUNCATE removed. ``resync``: copy the
    table again with its current columns. ``repair``: read the rows that differ from the source again. ``leave``: the
    table stays as it is."""

    APPLY = "apply"
    RENAME = "rename"
    IGNORE = "ignore"
    RESYNC = "resync"
    REPAIR = "repair"
    LEAVE = "leave"


@dataclass(frozen=True)
class Question:
    """``changes``: a sentence each. ``statements``: what ``apply`` executes in the target. ``columns``: those that
    ``ignore`` leaves out. ``renames``: dropped column → added column, for ``rename``. ``schema_id``: of the schema
    after the changes."""

    id: str
    table: str
    window: int
    changes: tuple[str, ...]
    answers: tuple[Answer, ...]
    statements: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    renames: tuple[tuple[str, str], ...] = ()
    schema_id: str = ""

    @property
    def about_difference(self) -> bool:
        """Whether it is about rows that differ from the source; the table does not wait."""
        return Answer.REPAIR in self.answers


def question_id(table: str, floor: str, window: int, before: str, after: str) -> str:
    """Sixteen hex digits. ``before``, ``after``: what changed. At another cursor, the same change is another
    question."""
    text = "\n".join((table, floor, str(window), before, after))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
