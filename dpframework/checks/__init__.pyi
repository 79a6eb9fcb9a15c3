from .allowed_risks import (
    ALLOWANCES as ALLOWANCES,
    Allowance as Allowance,
)
from .assumption_texts_and_check_help_pages import (
    ASSUMPTIONS as ASSUMPTIONS,
    CheckPage as CheckPage,
    check_page as check_page,
)
from .base import (
    Check as Check,
    Finding as Finding,
    Severity as Severity,
)
from .built_in import (
    BUILT_IN as BUILT_IN,
    findings as findings,
)
