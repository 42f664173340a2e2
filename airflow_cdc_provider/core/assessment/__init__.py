"""Which tables and columns can be copied, how, and how long their first copies take. Pure."""
