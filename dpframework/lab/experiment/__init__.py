"""Experiments, which compare methods, parameters, budgets and data sets on a grid by the truth. Not private.

An experiment file says what is compared. The cells of the grid are computed in parallel, stored one by one, and
summarised.
"""

from dpframework.lab.experiment.experiment_file import load_experiment
from dpframework.lab.experiment.grid import Experiment
from dpframework.lab.experiment.runner import Outcome, run_experiment

__all__ = ["Experiment", "Outcome", "load_experiment", "run_experiment"]
