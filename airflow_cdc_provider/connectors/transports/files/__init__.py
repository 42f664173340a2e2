"""Messages in the files of a folder or bucket."""
