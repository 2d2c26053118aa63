"""Many Variant values at once, compiled. Each kernel is equal to a plain twin elsewhere."""
