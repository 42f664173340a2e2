"""A batch: which windows it holds, the rows staged for one merge, and what is known of them."""
