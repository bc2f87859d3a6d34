# SPDX-License-Identifier: Apache-2.0
"""The machine tests start the exporter as the live tests do."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "live"))
