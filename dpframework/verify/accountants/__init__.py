"""Tests of accountants, which compare their totals with the exact losses of small plans."""
