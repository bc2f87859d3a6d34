# SPDX-License-Identifier: Apache-2.0
"""
Do the unit tests notice a change? One comparison or constant at a time is changed in the code that
decides (machines, histogram, ledger, unwind tables), the unit tests that depend on it are built and run, and a
mutant that none of them kills is reported. A survivor needs a better test, or, if nobody could tell
it from the original, a row in survivors.txt.

  run.py BUILD [--files NAME...] [--every N]     exit 1: a survivor without a reason, too many, or a
                                                 row of survivors.txt that is none (any more)
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LISTED = ROOT / "tests" / "mutants" / "survivors.txt"
MUTATED = ["bpf/machine/*.h", "bpf/abi/histogram.h", "exporter/model/ledger*.c", "exporter/unwind/*.c"]
KILL_RATE = 0.9
RUN_SECONDS = 30

# Swapped with its neighbour on the number line, or with its opposite.
OPERATORS = {"==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "&&": "||", "||": "&&"}
OPERATOR = re.compile(r"(?<![<>=!&|+\-])(==|!=|<=|>=|<|>|&&|\|\|)(?![<>=&|])")
NUMBER = re.compile(r"(?<![\w.])(0x[0-9a-fA-F]+|\d+)([uUlL]*)\b(?!\.)")
# No code, or code whose change cannot be compiled into a test: comments, texts, layout checks.
BLANKED = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\])\'', re.DOTALL)
BRANCH = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b")
FUNCTION = re.compile(r"^[a-z].*?(\w+)\(")
PARAMETER = re.compile(r"(?<=\w )\w+\[\w+\](?=[,)])")  # how long an array is that a function is given
SKIPPED = re.compile(r"^\s*(#\s*(include|if|ifdef|ifndef|elif|else|endif|undef)|_Static_assert|static_assert)")


def is_test(source):
    """What else is below tests/ stands for a part of the exporter."""
    return pathlib.Path(source).name.startswith("test_")


def blanked(text):
    """The text with what is no code as spaces, every other character in its place."""
    for pattern in (BLANKED, PARAMETER):
        text = pattern.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    return text


class Mutant:
    def __init__(self, path, line, start, end, new, text):
        self.path, self.line = path, line
        self.text = text[:start] + new + text[end:]
        row_start = text.rfind("\n", 0, start) + 1
        row = text[row_start : text.find("\n", end)]
        column = start - row_start - (len(row) - len(row.lstrip()))
        self.what = f"{row.strip()} [{column}: {text[start:end]} -> {new}]"
        self.mark = None  # names it in survivors.txt, where lines move


def branches_marked(text):
    """The text with a word, which numbers the row, behind each directive that begins a branch."""
    for number, row in enumerate(text.splitlines(), 1):
        found = BRANCH.match(row)
        yield row
        if found and found[1] != "endif":
            yield f"mutant_branch_{number}"


def rows_compiled(path, text, compiler):
    """The numbers of the rows that the preprocessor keeps: what is for another architecture is not."""
    out = subprocess.run([*compiler, f"-I{(ROOT / path).parent}", "-E", "-"], cwd=ROOT, text=True, check=True,
                         input="\n".join(branches_marked(text)) + "\n", capture_output=True).stdout  # fmt: skip
    taken = {int(number) for number in re.findall(r"mutant_branch_(\d+)", out)}
    kept, stack = set(), [True]
    for number, row in enumerate(text.splitlines(), 1):
        found = BRANCH.match(row)
        if not found:
            kept |= {number} if all(stack) else set()
        elif found[1] == "endif":
            stack.pop()
        else:
            stack[len(stack) if found[1].startswith("if") else -1 :] = [number in taken]
    return kept


def changes(row):
    """(first column, last column, what replaces it) of each change of one row."""
    for found in OPERATOR.finditer(row):
        yield found.start(), found.end(), OPERATORS[found.group()]
    for found in NUMBER.finditer(row):
        value = int(found.group(1), 0)
        value = 0 if value == 1 else value + 1  # of a flag, 2 would be as good as 1
        yield found.start(), found.end(), f"{value}{found.group(2)}"


def mutants_of(path, compiler):
    text = (ROOT / path).read_text()
    kept = rows_compiled(path, text, compiler)
    start, function, marks = 0, "", {}
    for number, row in enumerate(blanked(text).splitlines(keepends=True), 1):
        found = FUNCTION.match(row)
        function = found[1] if found else "" if row.startswith(("#define", "}")) else function
        for first, last, new in changes(row) if number in kept and not SKIPPED.match(row) else ():
            mutant = Mutant(path, number, start + first, start + last, new, text)
            mark = ": ".join(filter(None, (path, function, mutant.what)))
            marks[mark] = marks.get(mark, 0) + 1
            mutant.mark = mark if marks[mark] == 1 else f"{mark} #{marks[mark]}"
            yield mutant
        start += len(row)


class Bench:
    """The unit tests as objects, so that a mutant costs only what depends on it."""

    def __init__(self, build, commands):
        self.build, self.compiler, self.libraries = build, commands[0], commands[1]
        self.sources = commands[2]

    def object_of(self, source, folder):
        return folder / (str(source).replace("/", "_") + ".o")

    def compile(self, source, folder):
        """What lies in @folder, under its path in the tree, comes before the tree's own."""
        path = folder / source if (folder / source).exists() else ROOT / source
        return subprocess.run(
            [self.compiler[0], f"-I{folder / 'bpf'}", *self.compiler[1:], "-MMD"]
            + ["-c", str(path), "-o", str(self.object_of(source, folder))],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def prepare(self):
        base = self.build / "base"
        base.mkdir(parents=True, exist_ok=True)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for done in pool.map(lambda source: self.compile(source, base), self.sources):
                if done.returncode:
                    sys.exit(done.stderr)
        self.base = base
        self.dependents = {}
        for source in self.sources:
            listed = self.object_of(source, base).with_suffix(".d").read_text()
            for name in re.findall(r"\S+\.[ch]\b", listed):
                name = os.path.relpath(ROOT / name, ROOT)
                self.dependents.setdefault(name, []).append(source)

    def tests_of(self, path):
        """Test files that see the mutated text: by inclusion, or called like that source or its folder."""
        touched = self.dependents.get(path, [])
        tests = [source for source in touched if source.startswith("tests/")]
        stem, folder = pathlib.Path(path).stem.split("_")[0], pathlib.Path(path).parent.name
        if path.endswith(".c"):
            named = re.compile(f"_({stem}|{folder})")
            tests += [s for s in self.sources if s.startswith("tests/") and named.search(s)]
        return touched, tests

    def survives(self, mutant, number):
        """Whether no unit test notices @mutant; a mutant that does not compile is none (None)."""
        folder = self.build / str(number)
        target = folder / mutant.path
        target.parent.mkdir(parents=True)
        target.write_text(mutant.text)
        try:
            touched, tests = self.tests_of(mutant.path)
            objects = []
            for source in touched:
                if self.compile(source, folder).returncode:
                    return None
                objects.append(self.object_of(source, folder))
            rest = [s for s in self.sources if s not in touched]
            objects += [self.object_of(s, self.base) for s in rest if not is_test(s) or s in tests]
            program = folder / "tests"
            linked = subprocess.run(
                [*self.compiler, *map(str, objects), *self.libraries, "-o", str(program)],
                cwd=ROOT, capture_output=True, check=False,
            )  # fmt: skip
            if linked.returncode:
                return None
            return self._run(program)
        finally:
            shutil.rmtree(folder)

    def expect_passing(self, paths, pool):
        """A test that fails without a change would kill every mutant."""
        texts = [Mutant(path, 1, 0, 0, "", (ROOT / path).read_text()) for path in paths]
        for path, passes in zip(paths, pool.map(self.survives, texts, [f"same{i}" for i in range(len(paths))])):
            if not passes:
                sys.exit(f"{path}: its unit tests fail without a change")

    @staticmethod
    def _run(program):
        try:
            done = subprocess.run([str(program), "--jobs", "1", "--fail-fast", "--timeout", "10"],
                                  cwd=ROOT, capture_output=True, timeout=RUN_SECONDS, check=False)  # fmt: skip
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


def listed_survivors():
    """Mark -> reason: the comment above it, down to the next empty line."""
    reasons, reason = {}, ""
    for row in LISTED.read_text().splitlines():
        if row.startswith("#"):
            reason = f"{reason} {row.lstrip('# ')}".strip()
        elif not row:
            reason = ""
        elif not reason or row in reasons:
            sys.exit(f"{LISTED.name}: without a reason, or there twice: {row}")
        else:
            reasons[row] = reason
    return reasons


def stale_rows(reasons, mutants, fates):
    """Rows of survivors.txt that are no survivors: killed now, or not found in their file."""
    found, paths = {mutant.mark for mutant in mutants}, {mutant.path for mutant in mutants}
    killed = {mutant.mark for mutant, fate in fates.items() if not fate}
    for mark in reasons:
        if mark in killed:
            yield f"listed, but killed: {mark}"
        elif mark not in found and (mark.split(": ")[0] in paths or not (ROOT / mark.split(": ")[0]).exists()):
            yield f"listed, but not there: {mark}"


def report(reasons, fates, faults):
    """Prints @faults, and a row per file; whether all is well. @fates: mutant -> survives."""
    print(*faults, sep="\n", end="\n" if faults else "")
    for path in [*dict.fromkeys(mutant.path for mutant in fates), ""]:
        own = {mutant: fate for mutant, fate in fates.items() if fate is not None and path in ("", mutant.path)}
        killed = sum(not fate for fate in own.values())
        equal = sum(mutant.mark in reasons for mutant, fate in own.items() if fate)
        rate = killed / len(own) if own else 1
        print(f"{path or 'all'}: {len(own)} mutants, {killed} killed, {equal} explained: {100 * rate:.1f} %")
    unexplained = sum(mutant.mark not in reasons for mutant, fate in fates.items() if fate)
    print(f"mutants: {len(own) - unexplained} passed, {unexplained + len(faults)} failed")
    return rate >= KILL_RATE and not unexplained and not faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--libraries", required=True)
    parser.add_argument("--sources", required=True)
    parser.add_argument("--files", nargs="*", help="only these files")
    parser.add_argument("--every", type=int, default=1, help="only each N-th mutant, and the listed ones")
    options = parser.parse_args()
    build = options.build.resolve()
    shutil.rmtree(build, ignore_errors=True)
    bench = Bench(build, [options.compiler.split(), options.libraries.split(), options.sources.split()])
    bench.prepare()
    paths = [str(p.relative_to(ROOT)) for pattern in MUTATED for p in sorted(ROOT.glob(pattern))]
    paths = [path for path in paths if not options.files or path in options.files]
    mutants = [mutant for path in paths for mutant in mutants_of(path, bench.compiler)]
    reasons = listed_survivors()
    chosen = set(mutants[:: options.every])
    tried = [mutant for mutant in mutants if mutant in chosen or mutant.mark in reasons]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        bench.expect_passing(paths, pool)
        fates = {}
        for mutant, fate in zip(tried, pool.map(bench.survives, tried, range(len(tried)))):
            fates[mutant] = fate
            if fate and mutant.mark not in reasons:
                print(f"survives: line {mutant.line}: {mutant.mark}", flush=True)
    faults = list(stale_rows(reasons, mutants, fates))
    chosen = {mutant: fate for mutant, fate in fates.items() if mutant in chosen}
    sys.exit(0 if report(reasons, chosen, faults) else 1)


if __name__ == "__main__":
    main()
