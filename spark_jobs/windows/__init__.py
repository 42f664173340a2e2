"""Windows of the change log: written by extract, read by everything after it."""
