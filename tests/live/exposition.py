# SPDX-License-Identifier: Apache-2.0
"""A scrape as exact values: text format 0.0.4 in, series by name and labels out."""

import functools
import re
import shutil

_SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)')
_ESCAPE = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
_ESCAPED = {character: escape for escape, character in _ESCAPE.items()}


@functools.cache
def _is_installed(program):
    return program is not None and shutil.which(program) is not None


def _labels(text):
    labels, at = {}, 0
    while at < len(text):
        match = _LABEL.match(text, at)
        assert match, f"labels cannot be read: {text}"
        labels[match[1]] = re.sub(r'\\[\\"n]', lambda escape: _ESCAPE[escape[0]], match[2])
        at = match.end()
    return labels


def _number(text):
    try:
        return int(text)
    except ValueError:
        return float(text)


def _sample(line):
    match = _SAMPLE.match(line)
    assert match, f"not a sample: {line}"
    return _labels(match[2] or ""), _number(match[3])


def _lines(text, beginning):
    """Those of a page that begin so; its first line is a comment, and every line has an end."""
    at = text.find("\n" + beginning)
    while at >= 0:
        end = text.find("\n", at + 1)
        yield text[at + 1 : end]
        at = text.find("\n" + beginning, end)


def _quoted(name, value):
    """A label as it stands in a line."""
    return '{}="{}"'.format(name, re.sub(r'[\\"\n]', lambda c: _ESCAPED[c[0]], value))


class Scrape:
    """
    One answer of /metrics. `began` and `ended` are CLOCK_MONOTONIC seconds around it, `at` their
    middle. A line is looked for and read when it is asked for: a page has thousands, and a test
    looks at few of them on many pages.
    """

    def __init__(self, text, began=0.0, ended=0.0):
        assert not text or text.endswith("\n"), "the page has no end"
        self.text, self.began, self.ended = text, began, ended
        self.at = (began + ended) / 2
        self._lines = {}

    def _lines_of(self, name):
        if name not in self._lines:
            self._lines[name] = [*_lines(self.text, name + "{"), *_lines(self.text, name + " ")]
        return self._lines[name]

    @functools.cached_property
    def _names(self):
        return set(re.findall(r"^[^#\n][^{ \n]*", self.text, re.MULTILINE))

    @functools.cached_property
    def series(self):
        """{(name, labels as a frozen set of pairs): value} of the whole page"""
        return {
            (name, frozenset(labels.items())): value
            for name in self._names
            for labels, value in self.rows(name)
        }

    def rows(self, name, **wanted):
        """
        [(labels, value)] of the series whose labels include those wanted; none may be there twice.
        A workload with the name of an installed program may be that of another test, too: only its
        ports tell them apart.
        """
        assert "port" in wanted or not _is_installed(wanted.get("workload")), wanted
        wanted = {key: str(value) for key, value in wanted.items()}
        quoted = [_quoted(*pair) for pair in wanted.items()]
        likely = [line for line in self._lines_of(name) if all(each in line for each in quoted)]
        rows = [row for row in map(_sample, likely) if wanted.items() <= row[0].items()]
        keys = {frozenset(labels.items()) for labels, _ in rows}
        assert len(keys) == len(rows), f"a series of {name} is there twice"
        return rows

    def sum(self, name, **wanted):
        """What the matching series add up to; 0 if there is none."""
        return sum(value for _, value in self.rows(name, **wanted))

    def one(self, name, **wanted):
        """The value of the only matching series."""
        rows = self.rows(name, **wanted)
        assert len(rows) == 1, f"{name}{wanted}: {rows}"
        return rows[0][1]

    def lost_by(self, *workloads):
        """
        Requests and connections of theirs that were seen and are in no endpoint, by workload and
        reason. What is lost of nobody in particular may be that of any process of the machine.
        """
        reasons = ("request_unpaired", "connection_untracked", "socket_untracked")
        return {
            (workload, reason): lost
            for workload in workloads
            for reason in reasons
            for _, lost in self.rows(
                "workload_measurements_dropped_total", workload=workload, reason=reason
            )
        }

    def losses(self):
        """What the exporter tells to have lost since it started, by reason."""
        return {
            labels["reason"]: lost
            for labels, lost in self.rows("workload_exporter_dropped_total")
            if lost
        }

    def losses_of(self, workload):
        """
        What is known to be lost of @workload, by reason, but for what the machine does: its name
        came late as the CPUs were busy, and the kernel did not tell of a switch or of an end.
        """
        rows = self.rows("workload_measurements_dropped_total", workload=workload)
        of_machine = ("identity_late", "switch_unseen", "end_unseen")
        return {
            labels["reason"]: lost for labels, lost in rows if labels["reason"] not in of_machine
        }

    def belonging_to(self, workload):
        """All series of one workload, as in `series`."""
        quoted = _quoted("workload", workload)
        names = [name for name in self._names if any(quoted in line for line in self._lines_of(name))]
        return {
            (name, frozenset(labels.items())): value
            for name in names
            for labels, value in self.rows(name, workload=workload)
        }


CLOCKS_SECONDS = 0.001  # by which those of two CPUs may differ
REQUEST_HISTOGRAMS = ("queue", "service", "duration")


class Endpoint:
    """What a scrape says about one port, of all workloads unless @labels say which, in short words."""

    def __init__(self, scrape, port, **labels):
        self.scrape, self.labels = scrape, {"port": port, **labels}

    def get(self, name, **labels):
        return self.scrape.sum(name, **self.labels, **labels)

    def counts(self):
        """Observations in the three histograms: (queue, service, duration)."""
        return tuple(self.get(f"workload_request_{h}_seconds_count") for h in REQUEST_HISTOGRAMS)

    def seconds(self, histogram):
        return self.get(f"workload_request_{histogram}_seconds_sum")

    def abandoned(self):
        """Abandoned requests: (before the read, before the answer)."""
        return tuple(
            self.get("workload_requests_abandoned_total", stage=stage)
            for stage in ("queued", "service")
        )

    def goodbyes(self):
        return self.get("workload_connection_goodbyes_total")

    def leavers(self):
        """Clients that left without an answer to their last words: goodbyes, if in time."""
        return self.goodbyes() + self.abandoned()[1]

    def gauges(self):
        """(queued, in service, accept queue, connections)"""
        return tuple(
            self.get(f"workload_{name}")
            for name in (
                "requests_queued",
                "requests_in_service",
                "accept_queue_connections",
                "connections",
            )
        )

    def outcome(self):
        """All that became of the requests, and what is still open."""
        return {
            "requests": self.counts(),
            "abandoned": self.abandoned(),
            "goodbyes": self.goodbyes(),
            "unrequested": self.get("workload_unrequested_sends_total"),
            "unanswered": self.get("workload_unanswered_reads_total"),
            "one way": self.get("workload_one_way_connections_total"),
            "open": self.gauges(),
        }


class Pool:
    """What a scrape says about one pool of one workload, in both roles unless @labels say which."""

    def __init__(self, scrape, workload, pool, **labels):
        self.scrape, self.labels = scrape, {"workload": workload, "pool": pool, **labels}

    def get(self, name, **labels):
        return self.scrape.sum(name, **self.labels, **labels)

    def threads(self, state=None):
        return self.get("workload_threads", **({"state": state} if state else {}))

    def seconds(self, state=None):
        return self.get("workload_thread_seconds_total", **({"state": state} if state else {}))

    def mutex_waits(self):
        """(observations, seconds)"""
        return (
            self.get("workload_mutex_wait_seconds_count"),
            self.get("workload_mutex_wait_seconds_sum"),
        )


class PoolChange:
    """How a pool's threads spent the time between two scrapes, as shares of threads x time."""

    def __init__(self, before, after, workload, pool, threads):
        self.before, self.after = Pool(before, workload, pool), Pool(after, workload, pool)
        self.elapsed = after.at - before.at
        # Whenever in the two scrapes the threads were looked at.
        self.shortest, self.longest = after.began - before.ended, after.ended - before.began
        self.threads = threads

    def seconds(self, *states):
        """Of the states named, or of all."""
        names = states or (None,)
        return sum(self.after.seconds(name) - self.before.seconds(name) for name in names)

    def share(self, *states):
        return self.seconds(*states) / (self.threads * self.elapsed)

    def busy(self):
        return self.share() - self.share("idle")

    def check_whole(self):
        """All threads' time is accounted, and no more: holds on a busy machine, too."""
        each = self.seconds() / self.threads
        least, most = self.shortest - CLOCKS_SECONDS, self.longest + CLOCKS_SECONDS
        assert least <= each <= most, f"not {least} <= {each} <= {most}"

    def check_all(self, *states):
        """The pool spent all of its time in @states, but for rounding."""
        other, total = self.seconds() - self.seconds(*states), self.seconds()
        assert total > 0 and abs(other) <= 1e-6 * total, f"{other} of {total} s not in {states}"
