"""Tests on a cluster: a master, workers and executors in processes of their own."""
