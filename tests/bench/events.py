# SPDX-License-Identifier: Apache-2.0
"""
What one event costs in the exporter's BPF programs, as the kernel's statistics count it.

A program that makes one kind of event runs beside the exporter; a request is one of a keep-alive
connection: arrival, read and send on the server's side. The client's side, on the same machine, is
three events of an untracked socket, which are measured alone and taken off. Empty programs are beside
all of the exporter's, and measured in the same rounds.
"""

import contextlib
import statistics

import bpf
from floor import Floor
from machine import take_precedence
from services import Service
from variants import BASE_OF, VARIANTS, Unavailable

ROUNDS = 100000
VARIANTS_MEASURED = ("exporter", "syscall")
TURNS_BESIDE_BASE = 5
SOCKET_EVENTS = 3


def _per_round(before, after):
    """{program: (runs, ns)} a round, of those that run at least once in two rounds."""
    ran = bpf.ran_between(before, after)
    return {
        name: (runs / ROUNDS, ns / ROUNDS) for name, (runs, ns) in ran.items() if runs >= ROUNDS / 2
    }


def _ran(variant, empty, mode, listen):
    """What ran of the exporter's programs, and of the empty ones beside them."""
    service = Service("events", mode=mode, listen=listen, rounds=ROUNDS)
    take_precedence(service.pid)
    try:
        before, empty_before = bpf.programs(variant.pid), empty.programs()
        service.ask("start")
        after, empty_after = bpf.programs(variant.pid), empty.programs()
    finally:
        service.stop()
    return _per_round(before, after), _per_round(empty_before, empty_after)


def _per_run(ran, name):
    runs, ns = ran.get(name, (0, 0))
    return ns / runs if runs else None


def _wakeup_ns(ran):
    """By whom, and then that it is awake; None: one of both has not run."""
    times = [_per_run(ran, name) for name in ("threads_waking", "threads_wakeup")]
    return None if None in times else sum(times)


def _socket_ns(ran):
    """A round's time in what is not the scheduler's."""
    return sum(ns for name, (_, ns) in ran.items() if not name.startswith("threads_"))


def _events(unwatched, watched, untracked, both_sides):
    return {
        "keep-alive request (arrival, read, send)": _socket_ns(both_sides) - _socket_ns(untracked),
        "event of an untracked socket": _socket_ns(untracked) / SOCKET_EVENTS,
        "switch between unwatched threads": _per_run(unwatched, "threads_switch"),
        "switch between watched threads": _per_run(watched, "threads_switch"),
        "wake-up of an unwatched thread": _wakeup_ns(unwatched),
        "wake-up of a watched thread": _wakeup_ns(watched),
    }


def measured(name):
    """{event: ns} beside one variant, and of it what empty programs cost."""
    variant = VARIANTS[name]()
    empty = None
    try:
        empty = Floor(variant.pid)
        with bpf.statistics():
            rounds = [
                _ran(variant, empty, mode, listen)
                for mode, listen in (("switch", 0), ("switch", 1), ("socket", 0), ("request", 1))
            ]
    finally:
        if empty:
            empty.stop()
        variant.stop()
    return tuple(_events(*ran) for ran in zip(*rounds))


def _medians(turns):
    """Of each event; None where one turn has none."""
    return {
        event: None if any(turn[event] is None for turn in turns) else
        statistics.median(turn[event] for turn in turns)
        for event in turns[0]
    }  # fmt: skip


def measure(beside_base):
    """Beside another build: both in turn, and the medians. What that does not know is left out."""
    names, turns = VARIANTS_MEASURED, 1
    if beside_base:
        names, turns = [each for name in names for each in (name, BASE_OF[name])], TURNS_BESIDE_BASE
    found = {name: [] for name in names}
    for _ in range(turns):
        for name, those in found.items():
            with contextlib.suppress(Unavailable):
                those.append(measured(name))
    found = {name: those for name, those in found.items() if those}
    return {
        "variants": {name: _medians([own for own, _ in those]) for name, those in found.items()},
        "floors": {name: _medians([empty for _, empty in those]) for name, those in found.items()},
    }
