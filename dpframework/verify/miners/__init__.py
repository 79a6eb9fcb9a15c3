"""Tests of miners, whose runs are replayed on neighbouring tables."""
