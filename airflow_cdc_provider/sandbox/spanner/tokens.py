"""The words of a DDL statement."""

from __future__ import annotations

import re

from airflow_cdc_provider.sandbox.spanner import limits
from airflow_cdc_provider.sandbox.spanner.errors import Refused, invalid

TOKEN = re.compile(r"\s*(?:`([^`]+)`|('[^']*'|\"[^\"]*\")|([A-Za-z_]\w*)|(\d+)|(.))", re.DOTALL)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class Words:
    """Read from left to right. Keywords are compared without case."""

    def __init__(self, statement: str) -> None:
        self.statement = statement
        self._words = [match.groups() for match in TOKEN.finditer(statement.strip().rstrip(";"))]
        self._at = 0

    @property
    def is_at_end(self) -> bool:
        return self._at == len(self._words)

    def next_is(self, *keywords: str) -> bool:
        words = self._words[self._at : self._at + len(keywords)]
        plain = [(word[2] or word[3] or word[4] or "").upper() for word in words]
        return plain == [keyword.upper() for keyword in keywords]

    def take(self, *keywords: str) -> bool:
        """Whether these words come next, which are read then."""
        if not self.next_is(*keywords):
            return False
        self._at += len(keywords)
        return True

    def expect(self, *keywords: str) -> None:
        if not self.take(*keywords):
            raise self.refusal()

    def name(self) -> str:
        """In backticks or not."""
        quoted, _, word, *_ = self._next()
        found = quoted or word
        if not found or not NAME.fullmatch(found) or len(found) > limits.NAME_CHARACTERS:
            raise invalid(f"name not valid: {found} in {self.statement}")
        return str(found)

    def number(self) -> int:
        *_, number, _ = self._next()
        if not number:
            raise self.refusal()
        return int(number)

    def text(self) -> str:
        _, quoted, *_ = self._next()
        if not quoted:
            raise self.refusal()
        return str(quoted[1:-1])

    def names(self) -> tuple[str, ...]:
        """In parentheses."""
        self.expect("(")
        found = [self.name()]
        while self.take(","):
            found.append(self.name())
        self.expect(")")
        return tuple(found)

    def rest(self) -> str:
        words = self._words[self._at :]
        self._at = len(self._words)
        return " ".join(next(part for part in word if part) for word in words if any(word))

    def end(self) -> None:
        if not self.is_at_end:
            raise self.refusal()

    def refusal(self) -> Refused:
        return invalid(f"Error parsing Spanner DDL statement: {self.statement}")

    def _next(self) -> tuple[str | None, ...]:
        if self.is_at_end:
            raise self.refusal()
        self._at += 1
        return self._words[self._at - 1]
