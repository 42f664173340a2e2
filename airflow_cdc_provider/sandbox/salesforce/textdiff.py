"""Diffs of long text in events: unified, without context lines, with the hash of the new text."""

from __future__ import annotations

import hashlib
from difflib import SequenceMatcher

MIN_CHARACTERS = 1000
MAX_GROWTH = 0.5
MAX_CHANGED_LINES = 0.25


def text_diff(old: str, new: str) -> str | None:
    """None if the event contains the full text. The hash is over the exact bytes of the text."""
    if len(new) < MIN_CHARACTERS or len(old) < MIN_CHARACTERS:
        return None
    if abs(len(new) - len(old)) > MAX_GROWTH * len(old):
        return None
    newline = "\r\n" if "\r\n" in old else "\n"
    before, after = old.split(newline), new.split(newline)
    if any("\r" in line or "\n" in line for line in (*before, *after)):
        return None  # with two styles of line ends, joined lines are not the text
    hunks = [code for code in SequenceMatcher(None, before, after, autojunk=False).get_opcodes() if code[0] != "equal"]
    changed = sum(max(old_end - old_start, new_end - new_start) for _, old_start, old_end, new_start, new_end in hunks)
    if not hunks or changed > MAX_CHANGED_LINES * max(len(before), len(after)):
        return None
    lines = ["--- ", f"+++ {hashlib.sha256(new.encode()).hexdigest()}"]
    for _, old_start, old_end, new_start, new_end in hunks:
        lines.append(f"@@ -{_range(old_start, old_end)} +{_range(new_start, new_end)} @@")
        lines += [f"-{line}" for line in before[old_start:old_end]]
        lines += [f"+{line}" for line in after[new_start:new_end]]
    diff = "\n".join(lines)
    return diff if len(diff) < len(new) else None


def _range(start: int, end: int) -> str:
    """Line numbers start at 1; an empty range has the number of the line before it."""
    count = end - start
    return f"{start + 1 if count else start},{count}"
