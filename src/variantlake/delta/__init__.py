"""The Delta table: its log read and written, its schema, its statistics, our tags."""
