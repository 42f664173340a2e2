"""From the rows and changes of a source to those of the copy: before anything is written."""
