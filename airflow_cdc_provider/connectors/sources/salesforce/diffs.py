"""Long text that an update sends as a unified diff without context lines. Pure.

    ---
    +++ <SHA-256 of the new text, UTF-8>
    @@ -2,1 +2,1 @@
    -old line
    +new line

Line numbers count the lines of the old text. The hash is of the text as the record holds it, with its own newlines.
"""

from __future__ import annotations

import hashlib
import re

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*")
NEWLINES = ("\r\n", "\n")


def patched(text: str, diff: str) -> str | None:
    """The new text; ``text`` itself where the diff is in it already. None where the two do not belong together: then
    only the source can tell."""
    lines = [line.removesuffix("\r") for line in diff.removesuffix("\n").split("\n")]
    if len(lines) < 2 or not lines[0].startswith("---") or not lines[1].startswith("+++ "):
        return None
    wanted = lines[1].removeprefix("+++ ").strip().lower()
    if _hash(text) == wanted:
        return text
    # A text of one line does not show its newlines; the hash does.
    for newline in [mark for mark in NEWLINES if mark in text][:1] or NEWLINES:
        made = _applied(text.split(newline), lines[2:])
        if made is not None and _hash(new := newline.join(made)) == wanted:
            return new
    return None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _applied(old: list[str], diff: list[str]) -> list[str] | None:
    """The lines after all hunks; None where a hunk does not find what it takes away."""
    new: list[str] = []
    at = 0
    for line in diff:
        if hunk := HUNK.fullmatch(line):
            start, taken = int(hunk[1]), int(hunk[2] or "1")
            begin = start - 1 if taken else start  # a hunk that only adds names the line before
            if not at <= begin <= len(old):
                return None
            new += old[at:begin]
            at = begin
        elif line.startswith("-"):
            if at >= len(old) or old[at] != line[1:]:
                return None
            at += 1
        elif line.startswith("+"):
            new.append(line[1:])
        else:
            return None
    return new + old[at:]
