# SPDX-License-Identifier: Apache-2.0
"""The live tests' services and exporters, and Prometheus beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "live"))
