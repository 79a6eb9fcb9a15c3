"""Tests of readers and engines, which make tables and count on them, and the small tables of the kit."""
