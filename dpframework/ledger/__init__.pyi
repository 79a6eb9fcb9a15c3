from .approvals import (
    Approval as Approval,
    Binding as Binding,
    data_digests as data_digests,
)
from .data_set_opening_entry import opening as opening
from .data_sets import DataSet as DataSet
from .entry_hash_chain import Head as Head, LedgerTampered as LedgerTampered
from .ledger import Ledger as Ledger
from .ledger_pin_file import Pin as Pin
from .ledger_run import LedgerRun as LedgerRun
from .ledger_state import Records as Records
from .outside_releases import Outside as Outside, OutsideKind as OutsideKind
from .recorded_run import RecordedRun as RecordedRun
from .run_results_person_and_purpose import RecordedResult as RecordedResult, RunSubject as RunSubject
from .signers import Signers as Signers, read_signers as read_signers
from .spending_by_group_and_remainder import (
    GroupBy as GroupBy,
    GroupOfRuns as GroupOfRuns,
    group_runs as group_runs,
    remainder as remainder,
)
