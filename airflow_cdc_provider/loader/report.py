"""Collects the problems of a file, and formats values for messages without revealing secrets."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from airflow_cdc_provider.core.errors import Problem

SECRET_KEY = re.compile(
    r"passw|passphrase|pwd|secret|token|credential(?!s\.provider)|api_?key|access_?key|private_?key|auth_header", re.I
)
SECRET_VALUE = re.compile(
    r"://[^/@\s]*:[^/@\s]*@"
    r"|[?&;](password|passwd|pwd|token|secret|sig)="
    r"|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|\b(AKIA|ASIA)[0-9A-Z]{16}\b",
    re.I,
)
SHOWN_CHARACTERS = 40
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")


class YamlLocation(NamedTuple):
    """Line and column in a file, both from 1. ``path``: the key at this location (``tables[1].on_delete``)."""

    line: int
    column: int
    path: str = ""

    def below(self, *steps: str | int) -> YamlLocation:
        """The location of a nested key that is not in the file."""
        return self._replace(path=path_text(self.path, *steps))


@dataclass
class Report:
    """The problems and warnings of one file, ordered by location."""

    file: str
    _problems: list[tuple[YamlLocation, Problem]] = field(default_factory=list)
    _warnings: list[tuple[YamlLocation, Problem]] = field(default_factory=list)

    def problem(
        self, code: str, what: str, at: YamlLocation, *, found: str = "", allowed: str = "", do: str = ""
    ) -> None:
        self._problems.append((at, Problem(code, what, self._where(at), found, allowed, do)))

    def warning(self, code: str, what: str, at: YamlLocation, *, found: str = "", do: str = "") -> None:
        self._warnings.append((at, Problem(code, what, self._where(at), found, do=do)))

    @property
    def problems(self) -> tuple[Problem, ...]:
        return _in_order(self._problems)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return _in_order(self._warnings)

    def _where(self, at: YamlLocation) -> str:
        return f"{self.file}:{at.line}:{at.column} {at.path}".rstrip()


def path_text(parent: str, *steps: str | int) -> str:
    """A step is a key or a list index. A key that is not a plain word is quoted."""
    path = parent
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        elif WORD.fullmatch(step) and not SECRET_VALUE.search(step):
            path += f".{step}" if path else step
        else:
            path += f"[{shown(step)}]"
    return path


def shown(text: str) -> str:
    """At most 40 printable characters of ``text``; only the length if it may contain a secret."""
    if SECRET_VALUE.search(text):
        return f"{len(text)} characters, not shown"
    safe = "".join(c if c.isprintable() else "?" for c in text)
    return repr(safe) if len(safe) <= SHOWN_CHARACTERS else repr(safe[: SHOWN_CHARACTERS - 1] + "…")


def _in_order(entries: list[tuple[YamlLocation, Problem]]) -> tuple[Problem, ...]:
    return tuple(problem for _, problem in sorted(entries, key=lambda entry: entry[0]))
