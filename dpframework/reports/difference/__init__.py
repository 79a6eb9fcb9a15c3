"""What changed between two plans: in words, and as a merged tree to draw."""

from dpframework.reports.difference.base import Change, Difference, Topic
from dpframework.reports.difference.between import difference
from dpframework.reports.difference.merged import Mark, Merged
from dpframework.reports.difference.sides import Side

__all__ = ["Change", "Difference", "Mark", "Merged", "Side", "Topic", "difference"]
