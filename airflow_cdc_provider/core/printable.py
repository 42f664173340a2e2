"""Texts of others for a terminal, a log or a message: names of a source may have any characters."""

from __future__ import annotations


def printable(text: str) -> str:
    """In one line. Characters that control a terminal, end a line or turn the direction of a text become escapes, such
    as ``\\x1b``."""
    return text if text.isprintable() else "".join(map(_shown, text))


def printable_lines(text: str) -> str:
    """The lines of a longer text, with their tabs."""
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def _shown(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
