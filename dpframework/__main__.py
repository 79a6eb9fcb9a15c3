"""`python -m dpframework` is `dpframework`."""

from __future__ import annotations

import sys

from dpframework.cli import main

sys.exit(main())
