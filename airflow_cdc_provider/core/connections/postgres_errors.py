"""SQLSTATEs of PostgreSQL, by what they mean. A code that is not listed has the meaning of its class, the first two
characters, if that is listed."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_cdc_provider.core.connections.error_classes import (
    ATTACHED,
    CHANGED,
    CONSTRAINT,
    DAMAGED,
    GENERATED,
    LATER,
    RESUME,
    STATEMENT,
    UNIQUE,
    UNKNOWN,
    VALUE,
    Meaning,
    limit,
    permanent,
    permission,
    retry,
)

TEXTS = (
    "the text is not valid in the encoding of the database: correct it at the source, or leave its column out: "
    "`columns.exclude`; then `airflow cdc resume`"
)
TIMEOUT = "ALTER ROLE … RESET transaction_timeout, or the same of the database; a pooler may keep our sessions from it"
IDENTITY = (
    "ALTER TABLE … REPLICA IDENTITY FULL, or take the table out of the publication: a publication of the server lists "
    f"each table that it has, and this one has no key by which subscribers find a row; {RESUME}"
)

ERRORS: Mapping[str, Meaning] = {
    **retry("08 40 57P01 57P02 57P03 57P05 25P03 55006 55P03 72000 HV00N"),
    **retry("57014", "nothing: the next run tries again; somebody, or a proxy, cancels our statements"),
    **retry("42P06 42P07 42701 42710"),
    **retry("42P01 42703 42704 3F000", CHANGED),
    **limit("53 53000", "free memory, connections or disk space of the server, or raise its limits"),
    **limit("53100", "free disk space on the server"),
    **limit("53300", "raise max_connections of the server, or CONNECTION LIMIT of the role"),
    **limit("53400", "raise the setting that the server names"),
    **limit("25006", "connect to a server that accepts writes: this one is a standby, or its disk is full"),
    **permanent("22", VALUE),
    **permanent("22021 22P05", TEXTS),
    **permanent("23 44", CONSTRAINT),
    **permanent("23505", UNIQUE),
    **permanent("09 20 21 24 27 2F 38 39 P0", ATTACHED),
    **permanent("428C9", GENERATED),
    **permanent("25P04", TIMEOUT),
    **permanent("54", "the server cannot run a statement of this size: leave columns out with `columns.exclude`"),
    **permanent("54001", "raise max_stack_depth of the server"),
    **permanent("54011", "the table has more columns than PostgreSQL can hold: `columns.exclude`"),
    **permanent("0A 42", STATEMENT),
    **permanent("57P04 3D000", "name a database that exists in the Airflow connection"),
    **permanent("XX001 XX002", DAMAGED),
    **permission("42501 28 0L 0P"),
}

WRITES: Mapping[str, Meaning] = permanent("55000", IDENTITY)
"""What codes mean for a statement that writes rows. For others, 55000 is about replication slots and recovery."""

CONNECTION_LOST = Meaning(retry("08")["08"].kind, LATER)


def meaning(sqlstate: str | None, of_client: bool = False) -> Meaning:
    """An error without a code is one of the connection, or with ``of_client`` of the client library: it refuses a
    statement or a value that the server never sees."""
    if not sqlstate:
        return UNKNOWN if of_client else CONNECTION_LOST
    return ERRORS.get(sqlstate) or ERRORS.get(sqlstate[:2]) or UNKNOWN


def meaning_of_write(sqlstate: str | None, of_client: bool = False) -> Meaning:
    return WRITES.get(sqlstate or "") or meaning(sqlstate, of_client)
