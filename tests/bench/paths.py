# SPDX-License-Identifier: Apache-2.0
"""Where things are; the helpers of the live tests can be imported after this."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
RESULTS = BUILD / "bench"
SCRATCH = BUILD / "bench" / "scratch"
HERE = Path(__file__).resolve().parent

sys.path.insert(0, str(ROOT / "tests" / "live"))
