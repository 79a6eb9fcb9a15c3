"""Tests of how tables are read, derived, sampled and counted, and the small made-up tables of the verification kit."""
