"""People who are ill or not: a schema file and a study file for tests of files and commands."""

import dpframework as dpf

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


def tree_step(name: str, epsilon: object = 1, target: str = "ill") -> str:
    """Return a step of a study file: a tree with one test."""
    params = f'target = "{target}", max_depth = 1'
    return f'[[step]]\nname = "{name}"\nminer = "dp-id3"\nepsilon = {epsilon}\nparams = {{ {params} }}\n'


def study_file(epsilon: object, *steps: str) -> str:
    """Return a study file of the people in people.csv."""
    data = '[data]\npath = "people.csv"\nschema = "people.schema.toml"\n'
    return "".join([data, f"[privacy]\nepsilon = {epsilon}\n", *steps])


TREE_STUDY = study_file(1, tree_step("tree"))


def tree_plan(attribute: str) -> dpf.StudyPlan:
    """Return the plan of a study with one tree, on one of two attributes."""
    schema = dpf.Schema([dpf.Boolean("ill"), dpf.Boolean("tall"), dpf.Boolean("hiv")])
    study = dpf.Study(schema, epsilon=1)
    study.add("tree", dpf.miner("dp-id3", target="ill", attributes=[attribute], epsilon=1))
    return study.plan()
