# SPDX-License-Identifier: Apache-2.0
"""Real Prometheus servers of several versions, and what goes over the wire to them."""

import functools
import http.client
import http.server
import multiprocessing
import subprocess

from exporter import BUILD, ROOT
from prometheus import Prometheus, scrape_config

WAIT_SECONDS = 30
PASSED_ON = ("Accept", "Accept-Encoding", "X-Prometheus-Scrape-Timeout-Seconds")

# The one that is installed, and those of Debian's later suites: 2.53 and 3.5 when this was written.
SUITES = ("installed", "trixie", "sid")


class Unavailable(Exception):
    """A suite's Prometheus cannot be had here; says why."""


@functools.cache
def prometheus_of(suite):
    """The path of the suite's program, fetched if need be."""
    if suite == "installed":
        return "prometheus"
    directory = BUILD / "prometheus" / suite
    done = subprocess.run(
        [ROOT / "scripts" / "fetch_package.sh", directory, suite, "prometheus"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Unavailable(done.stderr.strip())
    return directory / "root" / "usr" / "bin" / "prometheus"


def _relay(exporter_port, accept, queue):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Relay)
    server.exporter_port, server.accept = exporter_port, accept
    server.queue, server.told = queue, set()
    queue.put(server.server_address[1])
    server.serve_forever()


class Wire:
    """
    Stands between a scraper and an exporter, and remembers the exchanges. With @accept it asks for
    that in place of what the scraper asks for: 2.42 cannot be told to want text.

    A process of its own: if the tests listened, all that they start would belong to their service.
    """

    def __init__(self, exporter_port, accept=None):
        context = multiprocessing.get_context("fork")
        self._queue = context.SimpleQueue()
        self._process = context.Process(target=_relay, args=(exporter_port, accept, self._queue))
        self._process.start()
        self.port = self._queue.get()
        self._exchanges = []

    @property
    def exchanges(self):
        """[(what the scraper accepts, what it got)] so far, each once."""
        while not self._queue.empty():
            self._exchanges.append(self._queue.get())
        return self._exchanges

    def stop(self):
        self._process.terminate()
        self._process.join()


class _Relay(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        headers = {name: self.headers[name] for name in PASSED_ON if self.headers[name]}
        if self.server.accept:
            headers["Accept"] = self.server.accept
        connection = http.client.HTTPConnection("127.0.0.1", self.server.exporter_port, timeout=10)
        connection.request("GET", self.path, headers=headers)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        exchange = (self.headers["Accept"], response.headers["Content-Type"])
        if exchange not in self.server.told:  # what is not taken out of the queue blocks it
            self.server.told.add(exchange)
            self.server.queue.put(exchange)
        self.send_response(response.status)
        for name in ("Content-Type", "Content-Encoding"):
            if response.headers[name]:
                self.send_header(name, response.headers[name])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Scraper(Prometheus):
    """The Prometheus of a suite that scrapes a port of this machine."""

    def __init__(self, directory, suite, target, *flags):
        jobs = [scrape_config("workload", [f"127.0.0.1:{target}"])]
        super().__init__(directory, jobs, program=prometheus_of(suite), flags=flags)

    def wait_for_value(self, expression):
        """The value of the only series that the expression gives, as soon as there is one."""
        rows = self.wait_for(expression, seconds=WAIT_SECONDS)
        assert len(rows) == 1, rows
        return rows[0][1]
