"""Which engines read our tables, and whose tables we read: `python -m interop`."""
