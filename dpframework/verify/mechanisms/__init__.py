"""Tests that compare a mechanism's draws with its log-density, and its losses with its claims."""
