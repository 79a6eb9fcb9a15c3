"""Let benchmarks import the module that they share, whether pytest or Python runs them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
