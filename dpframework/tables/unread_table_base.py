"""The base class of tables that are described before anything of them is read."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dpframework.facts.attributes_by_side import attributes_of_views
from dpframework.facts.domain_policies import OutOfDomain, as_policy
from dpframework.facts.schema import Schema
from dpframework.facts.unit import ROW, PrivacyUnit
from dpframework.facts.value_checks import as_names


@attrs.frozen(kw_only=True)
class UnreadTable:
    """The options by which a table is read, wherever its rows are.

    Attributes
    ----------
    schema
        The public facts about the table.
    out_of_domain, unit, key, values
        As for `read_table`.
    id
        The column that joins two views (see `read_two_views`).
    ordered
        Whether samples may be drawn. If so, the rows must be in order, and a database numbers them.
    placed
        Whether the place of each row within its unit may be asked for. If so, a database numbers the rows of each unit.
    """

    schema: Schema
    out_of_domain: OutOfDomain = attrs.field(default=OutOfDomain.CLAMP, converter=as_policy)
    unit: PrivacyUnit = ROW
    key: bytes | None = attrs.field(default=None, repr=False)
    values: frozenset[str] | None = attrs.field(default=None, converter=as_names)
    id: str | None = None
    ordered: bool = True
    placed: bool = True

    def sources_by(self, names: Sequence[str]) -> dict[str, str]:
        """Return the name that errors give to the table of each attribute, by the attribute's name.

        `names` are the name of the only table, or the names of both views.
        """
        if len(names) == 1:
            return dict.fromkeys(self.schema.names, names[0])
        sides = attributes_of_views(self.schema)
        return {one.name: name for side, name in zip(sides, names, strict=True) for one in side}
