from .approvals import (
    Approval as Approval,
    RecordedRun as RecordedRun,
)
from .binding import (
    Binding as Binding,
    data_digests as data_digests,
)
from .chain import (
    Head as Head,
    LedgerTampered as LedgerTampered,
)
from .ledger import (
    Ledger as Ledger,
    opening as opening,
)
from .records import (
    DataSet as DataSet,
    Records as Records,
)
from .run import LedgerRun as LedgerRun
