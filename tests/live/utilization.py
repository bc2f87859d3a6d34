# SPDX-License-Identifier: Apache-2.0
"""
How much of its time a pool works: by the exporter, and by the server's own clock.

That four workers with one client work for a quarter of the time is true only where the client sends
the next request at once. A CPU that is away (stolen by a hypervisor, or busy) keeps workers waiting,
and the exporter rightly says so: it is compared with what the server has measured meanwhile.
"""

import time

from exposition import PoolChange

TOLERANCE = 0.01


class Utilization:
    """
    Of the @threads of a pool_server during some seconds. `pool` is the exporter's PoolChange; `own`
    is the share of the time that they served, by their clock.
    """

    def __init__(self, exporter, server, threads, seconds):
        workload = exporter.workload_of(server.port)
        stats, scrapes = [], []
        for pause in (seconds, 0):
            stats.append(server.ask("stats"))
            scrapes.append(exporter.scrape())
            stats.append(server.ask("stats"))
            time.sleep(pause)
        self.pool = PoolChange(*scrapes, workload, "worker-#", threads)
        self._stats = stats

    def _served_seconds(self, begin, end):
        return (self._stats[end]["busy_ns"] - self._stats[begin]["busy_ns"]) / 1e9

    @property
    def own(self):
        elapsed = (self._stats[3]["now_ns"] - self._stats[0]["now_ns"]) / 1e9
        return self._served_seconds(0, 3) / (self.pool.threads * elapsed)

    def check(self, spent_in):
        """
        What a worker serves is busy time, and is spent in the state @spent_in, with a CPU, or in
        the queue for one; without a request it is never in @spent_in. The server's clock is read
        on both sides of both scrapes, so that this holds whoever waits for a CPU when.
        """
        pool, slack = self.pool, TOLERANCE * self.pool.threads * self.pool.elapsed
        assert self._served_seconds(1, 2) <= pool.seconds() - pool.seconds("idle") + slack
        assert pool.seconds(spent_in) <= self._served_seconds(0, 3) + slack
        assert pool.seconds(spent_in) > self._served_seconds(1, 2) / 2
        assert pool.busy() - pool.share(spent_in, "running", "runnable") < 0.005
