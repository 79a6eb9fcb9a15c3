"""Experiments, which compare methods, parameters, budgets and data sets against the exact rows. Not private.

An experiment file says what is compared. It describes a grid, in which each cell is one run of one method. The cells
are computed in parallel, stored one by one, and summarised.
"""

from dpframework.lab.experiment.experiment_contents_and_grid import Experiment
from dpframework.lab.experiment.experiment_file import load_experiment
from dpframework.lab.experiment.runner import Outcome, run_experiment

__all__ = ["Experiment", "Outcome", "load_experiment", "run_experiment"]
