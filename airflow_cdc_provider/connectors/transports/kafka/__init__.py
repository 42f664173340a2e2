"""Messages in topics of Kafka or of a system with its protocol."""
