"""Side by side with other engines; regenerates the tables in docs/."""
