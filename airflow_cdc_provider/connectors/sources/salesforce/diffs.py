"""Long text fields, which an update sends as a unified diff without context lines. Pure.

    ---
    +++ <SHA-256 of the new text, UTF-8>
    @@ -2,1 +2,1 @@
    -old line
    +new line

Line numbers are those of the old text. The hash is of the text as stored in the record, with its own newlines.
"""

from __future__ import annotations

import hashlib
import re

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*")
NEWLINES = ("\r\n", "\n")


def apply_diff(text: str, diff: str) -> str | None:
    """The new text; ``text`` itself if it already contains the diff. None if the diff is not for this text: then the
    value must be fetched from the source."""
    lines = [line.removesuffix("\r") for line in diff.removesuffix("\n").split("\n")]
    if len(lines) < 2 or not lines[0].startswith("---") or not lines[1].startswith("+++ "):
        return None
    expected_hash = lines[1].removeprefix("+++ ").strip().lower()
    if _hash(text) == expected_hash:
        return text
    # A text of one line has no newline to take over; the hash decides.
    for newline in [mark for mark in NEWLINES if mark in text][:1] or NEWLINES:
        new_lines = _apply_hunks(text.split(newline), lines[2:])
        if new_lines is not None and _hash(new := newline.join(new_lines)) == expected_hash:
            return new
    return None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _apply_hunks(old: list[str], diff: list[str]) -> list[str] | None:
    """None if a line that a hunk removes is not in the old text."""
    new: list[str] = []
    index = 0
    for line in diff:
        if hunk := HUNK.fullmatch(line):
            start, removed = int(hunk[1]), int(hunk[2] or "1")
            begin = start - 1 if removed else start  # the start of a hunk that only adds is the line before it
            if not index <= begin <= len(old):
                return None
            new += old[index:begin]
            index = begin
        elif line.startswith("-"):
            if index >= len(old) or old[index] != line[1:]:
                return None
            index += 1
        elif line.startswith("+"):
            new.append(line[1:])
        else:
            return None
    return new + old[index:]
