"""The ledger: the durable record of what was planned, approved and spent on a data set; never data."""

from __future__ import annotations

from dpframework.ledger.books import Approval, Books, DataSet, RecordedRun
from dpframework.ledger.chain import Head, LedgerTampered
from dpframework.ledger.ledger import Ledger, opening
from dpframework.ledger.run import LedgerRun

__all__ = ["Approval", "Books", "DataSet", "Head", "Ledger", "LedgerRun", "LedgerTampered", "RecordedRun", "opening"]
