"""Tests of accountants, whose totals are compared with exact enumeration."""
