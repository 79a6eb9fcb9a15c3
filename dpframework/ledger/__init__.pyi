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
    Books as Books,
    DataSet as DataSet,
    RecordedRun as RecordedRun,
)
from .run import LedgerRun as LedgerRun
