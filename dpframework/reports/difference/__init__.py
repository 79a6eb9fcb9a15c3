"""What changed between two plans: in words, and as a merged tree to draw."""

from dpframework.reports.difference.base import Change, Difference, Mark, Merged, Side, Topic
from dpframework.reports.difference.between import difference
from dpframework.reports.difference.nodes import loss_of

__all__ = ["Change", "Difference", "Mark", "Merged", "Side", "Topic", "difference", "loss_of"]
