"""What the decoders of event formats share. A format is pure: messages in, change records out; transports are apart."""
