"""Tests of mechanisms, whose draws and losses are compared with what they state."""
