"""The `variantlake` command: one file a group of commands."""
