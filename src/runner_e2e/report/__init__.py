"""Results: the record of each attempt and what people read of it."""
