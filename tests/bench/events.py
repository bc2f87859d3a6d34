# SPDX-License-Identifier: Apache-2.0
"""
What one event costs in the exporter's BPF programs, as the kernel's statistics count it.

A program that makes one kind of event runs beside the exporter; a request is one of a keep-alive
connection: arrival, read and send on the server's side. The client's side, on the same machine, is
three events of an untracked socket, which are measured alone and taken off.
"""

import bpf
from machine import take_precedence
from services import Service
from variants import VARIANTS

ROUNDS = 100000
VARIANTS_MEASURED = ("exporter", "syscall")
SOCKET_EVENTS = 3


def _ran(variant, mode, listen):
    """{program: (runs, ns)} a round, of those that run at least once in two rounds."""
    service = Service("events", mode=mode, listen=listen, rounds=ROUNDS)
    take_precedence(service.pid)
    try:
        before = bpf.programs(variant.pid)
        service.ask("start")
        ran = bpf.ran_between(before, bpf.programs(variant.pid))
    finally:
        service.stop()
    return {
        name: (runs / ROUNDS, ns / ROUNDS) for name, (runs, ns) in ran.items() if runs >= ROUNDS / 2
    }


def _per_run(ran, name):
    runs, ns = ran.get(name, (0, 0))
    return ns / runs if runs else None


def _socket_ns(ran):
    """A round's time in what is not the scheduler's."""
    return sum(ns for name, (_, ns) in ran.items() if not name.startswith("threads_"))


def measured(name):
    """{event: ns} beside one variant."""
    variant = VARIANTS[name]()
    try:
        with bpf.statistics():
            unwatched = _ran(variant, "switch", 0)
            watched = _ran(variant, "switch", 1)
            untracked = _ran(variant, "socket", 0)
            both_sides = _ran(variant, "request", 1)
    finally:
        variant.stop()
    return {
        "keep-alive request (arrival, read, send)": _socket_ns(both_sides) - _socket_ns(untracked),
        "event of an untracked socket": _socket_ns(untracked) / SOCKET_EVENTS,
        "switch between unwatched threads": _per_run(unwatched, "threads_switch"),
        "switch between watched threads": _per_run(watched, "threads_switch"),
        "wake-up of an unwatched thread": _per_run(unwatched, "threads_wakeup"),
        "wake-up of a watched thread": _per_run(watched, "threads_wakeup"),
    }


def measure():
    return {"variants": {name: measured(name) for name in VARIANTS_MEASURED}}
