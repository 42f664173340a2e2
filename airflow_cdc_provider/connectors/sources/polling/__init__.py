"""What sources have in common that are asked, interval by interval, for the rows whose timestamp says they changed."""
