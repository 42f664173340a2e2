"""The engines that do the work of a table, and the choice between them."""
