"""Full copies of tables: splits read in parallel, and one commit."""
