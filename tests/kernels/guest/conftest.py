# SPDX-License-Identifier: Apache-2.0
"""The tests of a kernel start the exporter as the live tests do."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "live"))
