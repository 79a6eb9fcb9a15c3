"""Tables that are described before they are read: which of the sources each attribute is in."""

from __future__ import annotations

import dpframework as dpf
from dpframework.facts.domain_policies import OutOfDomain
from dpframework.tables.table_files import UnreadTable

LEFT, RIGHT = dpf.Boolean("ill", view="left"), dpf.Boolean("cold", view="right")


def test_each_attribute_is_in_the_only_source_or_in_that_of_its_view() -> None:
    table = UnreadTable(schema=dpf.Schema([LEFT, RIGHT]))
    assert table.sources_by(["t"]) == {"ill": "t", "cold": "t"}
    assert table.sources_by(["l", "r"]) == {"ill": "l", "cold": "r"}


def test_the_key_that_chooses_rows_is_not_shown_and_the_policy_is_parsed() -> None:
    table = UnreadTable(schema=dpf.Schema([LEFT]), key=b"secret", out_of_domain="missing", values=["ill"])
    assert "secret" not in repr(table)
    assert table.out_of_domain is OutOfDomain.MISSING
    assert table.values == frozenset({"ill"})
