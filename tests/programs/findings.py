"""What a program may show that must not be."""

from __future__ import annotations

import re

NUMBERS = re.compile(r"/dev/shm\S+|/tmp\S+|p[0-9]+_[0-9]+\w*|0x[0-9a-f]+|[0-9]+|'[^']*'")
"""What differs between two findings that are one."""


class Finding(AssertionError):
    """``kind``: wrong rows, no reason, false reason, green, red, endless, lost, question, unasked, check, refused,
    crash or not healed."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail

    @property
    def signature(self) -> str:
        """The same for findings that look alike."""
        return NUMBERS.sub("#", f"{self.kind}: {self.detail}")[:90]


GROUNDS = {
    "schema": r"schema|column|renamed|type|changed|identity|statement|alter|rewritten",
    "bad": r"record|quarantine|cannot (hold|be)|infinit|zero date|bad|no target",
    "server": r"publi|binlog|logged|identity|row image",
    "position": r"slot|position|log|no longer|purged",
    "outage": r"connect|reach|unavailable|refused|answer",
    "missing": r"missing|no table|control record|restore|not created",
    "truncate": r"TRUNCATE|truncate",
    "deletes": r"delete",
    "feed": r"from its beginning|snapshot",
    "key": r"key",
    "definition": r"definition|YAML|settings|key",
    "listed": r"capture",
    "renamed": r"renamed|schema change|lists|no table|not exist|does not have|missing",
    "target": r"is not its copy",
    "zone": r"time_zone",
    "created": r"dropped|created|another table|identity|hole|replaced|missing|not exist",
}
"""What may stop a copy → words that its reason must have then."""


def is_true(grounds: set[str], reason: str) -> bool:
    return any(re.search(GROUNDS[ground], reason, re.IGNORECASE) for ground in grounds)
