"""Long text travels as a diff where that is shorter: unified, without context lines, under the new text's hash."""

from __future__ import annotations

import hashlib
from difflib import SequenceMatcher

LEAST_CHARACTERS = 1000
MOST_GROWTH = 0.5
MOST_LINES = 0.25


def text_diff(old: str, new: str) -> str | None:
    """None where the whole text is to be sent. Lines are those of the text; the hash is over its exact bytes."""
    if len(new) < LEAST_CHARACTERS or len(old) < LEAST_CHARACTERS:
        return None
    if abs(len(new) - len(old)) > MOST_GROWTH * len(old):
        return None
    newline = "\r\n" if "\r\n" in old else "\n"
    before, after = old.split(newline), new.split(newline)
    if any("\r" in line or "\n" in line for line in (*before, *after)):
        return None  # two styles of line ends: a reader who joins lines could not get the text back
    hunks = [code for code in SequenceMatcher(None, before, after, autojunk=False).get_opcodes() if code[0] != "equal"]
    touched = sum(max(old_end - old_start, new_end - new_start) for _, old_start, old_end, new_start, new_end in hunks)
    if not hunks or touched > MOST_LINES * max(len(before), len(after)):
        return None
    lines = ["--- ", f"+++ {hashlib.sha256(new.encode()).hexdigest()}"]
    for _, old_start, old_end, new_start, new_end in hunks:
        lines.append(f"@@ -{_range(old_start, old_end)} +{_range(new_start, new_end)} @@")
        lines += [f"-{line}" for line in before[old_start:old_end]]
        lines += [f"+{line}" for line in after[new_start:new_end]]
    diff = "\n".join(lines)
    return diff if len(diff) < len(new) else None


def _range(start: int, end: int) -> str:
    """Line numbers start at 1; an empty range names the line before it."""
    count = end - start
    return f"{start + 1 if count else start},{count}"
