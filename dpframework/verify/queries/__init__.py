"""Tests of queries, whose answers' changes are searched."""
