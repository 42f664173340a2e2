"""Code that the decoders of event formats share."""
