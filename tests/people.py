"""The public facts of people who are ill or not, and of some age: a schema file for tests of files and commands."""

SCHEMA_FILE = """
[[attribute]]
name = "ill"
kind = "boolean"
[[attribute]]
name = "age"
kind = "numeric"
lower = 0
upper = 100
bins = 4
"""
