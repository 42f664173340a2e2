"""How rows get into Spark: one module per transport."""
