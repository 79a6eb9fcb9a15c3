"""Tests of queries, which search for larger changes of answers than are declared."""
