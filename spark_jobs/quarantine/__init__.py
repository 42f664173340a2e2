"""Records that cannot be applied yet: bad ones, rows to fetch again, and what waits behind them."""
