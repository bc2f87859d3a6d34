# SPDX-License-Identifier: Apache-2.0
"""
Whatever the exposition writers write, the parsers of python3-prometheus-client read: pages made of
the corpus and of random inputs, with the names and numbers in both formats compared.

    parse.py FUZZ_EXPOSITION CORPUS... [--inputs N] [--seed S]
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text


def samples(families):
    found = {}
    for family in families:
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            if key in found:
                raise ValueError(f"twice: {key}")
            found[key] = float(sample.value)  # one parser keeps integers
    return found


def check(binary, content, directory):
    source = directory / "input"
    source.write_bytes(content)
    pages = directory / "pages"
    pages.mkdir(exist_ok=True)
    subprocess.run(
        [binary, source],
        env={**os.environ, "FUZZ_WRITE": str(pages)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=True,
    )
    openmetrics = samples(read_openmetrics((pages / "openmetrics").read_bytes().decode()))
    text = samples(read_text((pages / "text").read_bytes().decode()))
    if openmetrics != text:
        different = openmetrics.items() ^ text.items()
        raise ValueError(f"the formats differ: {sorted(different, key=str)[:4]}")
    return len(openmetrics)


def random_input(chance):
    """Bytes that mean something in the formats are frequent."""
    hostile = b'\\"\n{}=,# \xff\xc3\xed\xf4\x80\x00'
    return bytes(
        chance.choice(hostile) if chance.random() < 0.3 else chance.randrange(256)
        for _ in range(chance.randrange(1200))
    )


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("binary")
    arguments.add_argument("corpus", nargs="+", type=Path)
    arguments.add_argument("--inputs", type=int, default=30)
    arguments.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = arguments.parse_args()
    chance = random.Random(options.seed)
    inputs = [path.read_bytes() for folder in options.corpus for path in sorted(folder.iterdir())]
    inputs += [random_input(chance) for _ in range(options.inputs)]
    total = 0
    with tempfile.TemporaryDirectory(prefix="workload_fuzz_") as directory:
        for number, content in enumerate(inputs):
            try:
                total += check(options.binary, content, Path(directory))
            except (ValueError, subprocess.CalledProcessError) as error:
                sys.exit(f"input {number} of seed {options.seed}: {error}\n{content!r}")
    print(f"exposition: {len(inputs)} pages, {total} samples read alike in both formats")


main()
