"""Which paths of a Variant column become typed columns, and what the files then look like."""
