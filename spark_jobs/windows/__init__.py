"""Windows of the change log: written by ``extract``, read by all later steps."""
