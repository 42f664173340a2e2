"""What transports share around a decoder of messages: tables, schemas, row filters, empty copies, checks."""
