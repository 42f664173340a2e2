"""Records that cannot be applied yet: bad ones, rows to refetch, and the records that wait for them."""
