"""The findings on derived columns: cells outside of their domain, and histograms that change too much."""

from __future__ import annotations

from dpframework.facts.attributes import Attribute
from dpframework.facts.privacy_losses import Relation
from dpframework.verify.tables.row_kinds import Columns, histogram_change, outside_of_domain


class DerivationFindings:
    """The largest changes of histograms so far, and the first violation of each kind and column."""

    def __init__(self) -> None:
        self.violations: dict[tuple[str, str], str] = {}
        self.changes = {relation.value: 0 for relation in Relation}

    def add(self, kind: str, name: str, says: str) -> None:
        """Note a violation, if it is the first of its kind for a column (the name is empty if it concerns the rows)."""
        self.violations.setdefault((kind, name), says)

    def check_domain(self, attribute: Attribute, found: Columns) -> None:
        """Note a violation if a cell of a column lies outside of its public domain."""
        if outside_of_domain(attribute, found[attribute.name]):
            says = f"'{attribute.name}' is outside of its public domain, {attribute.domain_text}"
            self.add("domain", attribute.name, says)

    def check_change(self, relation: Relation, attribute: Attribute, one: Columns, other: Columns) -> None:
        """Note a violation if a column's histogram changes more between neighbours than a histogram declares."""
        change = histogram_change(attribute, one[attribute.name], other[attribute.name])
        self.changes[relation.value] = max(self.changes[relation.value], change)
        most = 1 if relation is Relation.ADD_OR_REMOVE_ONE else 2
        if change > most:
            says = f"changes by {change} under {relation}, where {most} is declared"
            self.add(relation.value, attribute.name, f"the histogram of '{attribute.name}' {says}")
