"""What to read: predicates on paths, file skipping, exact conversions, and the scan plan."""
