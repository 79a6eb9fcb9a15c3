"""Experiments and what they need: evaluations against the exact rows, which are not private, and a synthetic clinic.

Forecasts of the cost of a run and the demo are here, too.
"""
