from .chain import (
    Head as Head,
    LedgerTampered as LedgerTampered,
)
from .ledger import (
    Ledger as Ledger,
    opening as opening,
)
from .records import (
    Approval as Approval,
    DataSet as DataSet,
    RecordedRun as RecordedRun,
    Records as Records,
)
from .run import LedgerRun as LedgerRun
