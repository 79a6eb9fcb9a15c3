"""The conformance suite of accountants, whose totals must be at least what plans lose.

Subclass it in a test module, and name your accountant::

    class TestForgiving(AccountantConformance):
        accountant = Forgiving
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dpframework.accountant import Accountant
from dpframework.facts.privacy_losses import Amount
from dpframework.verify.accountants.accountant_total_check import DELTAS, check_accountant


class AccountantConformance:
    """The tests that every accountant must pass.

    Attributes
    ----------
    accountant
        The class of the accountant that is tested.
    deltas
        The deltas of the studies for which the accountant is tried (see `check_accountant`).
    """

    accountant: ClassVar[type[Accountant[Any]]]
    deltas: ClassVar[Sequence[Amount]] = DELTAS

    def test_it_names_and_documents_itself(self) -> None:
        """The accountant has a docstring, and a name for plans, reports and the command line."""
        assert isinstance(getattr(self.accountant, "name", None), str), "the accountant has no name"
        assert (self.accountant.__doc__ or "").strip(), "the accountant has no docstring"

    def test_totals_and_charges_cover_what_plans_lose(self) -> None:
        """Every rule of composition is tried under both relations, for rows and units (see `check_accountant`)."""
        report = check_accountant(self.accountant, deltas=self.deltas)
        assert report.passed, str(report)
        print(report)  # pytest shows it with -rP
