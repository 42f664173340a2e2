"""What the catalog proves of the columns of an index, as SQL: ``i`` is pg_index, ``a`` pg_attribute."""

from __future__ import annotations

IN_KEY = "a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])"
"""Without the columns that the index only includes: neither are they unique, nor are they logged as an identity."""

NOT_NULL = """(a.attnotnull AND NOT EXISTS (
    SELECT FROM pg_constraint v
    WHERE v.conrelid = a.attrelid AND v.contype = 'n' AND NOT v.convalidated AND v.conkey = ARRAY[a.attnum]))"""
"""Since version 18 a column may be NOT NULL for new rows only, and has a constraint that was not validated."""
