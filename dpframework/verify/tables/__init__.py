"""Tests of readers of tables and of engines, and the small made-up tables of the verification kit."""
