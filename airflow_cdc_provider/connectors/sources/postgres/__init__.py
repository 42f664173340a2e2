"""PostgreSQL: one main slot read by ``pgoutput`` through the slot functions, exact copies by temporary slots."""
