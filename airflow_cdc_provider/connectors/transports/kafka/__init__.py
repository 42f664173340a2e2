"""Messages in the topics of Kafka, or of whatever speaks its protocol."""
