# SPDX-License-Identifier: Apache-2.0
"""Database servers, each with a directory of its own, and clients that make one query."""

import os
import shutil
import signal
import struct
import subprocess
import tempfile
from pathlib import Path

from services import READY_SECONDS, Process, free_port, wait_until

POSTGRESQL = max(Path("/usr/lib/postgresql").glob("*/bin"), default=Path("postgresql"))


class _Database(Process):
    """Runs as @user, whose the directory is; ready when its log says so."""

    def __init__(self, user, prepare, serve, ready):
        self.port = free_port()
        self.directory = Path(tempfile.mkdtemp(prefix="workload-test-"))
        self.directory.chmod(0o755)
        shutil.chown(self.directory, user)
        log = self.directory / "log"
        with open(log, "wb") as output:
            # A MariaDB that starts takes away the temporary tables of all others in its directory of those.
            env = {"HOME": "/", **os.environ, "TMPDIR": str(self.directory)}
            options = {"cwd": self.directory, "env": env, "user": user}
            options.update(stdout=output, stderr=output)
            subprocess.run(prepare(self.directory), check=True, **options)
            super().__init__(serve(self.directory, self.port), **options)
        wait_until(lambda: ready in log.read_text(), READY_SECONDS, "the database did not start")

    def stop(self):
        """As its manual says, so that nothing is left of it."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            pass
        super().stop()
        shutil.rmtree(self.directory, ignore_errors=True)


class PostgreSQL(_Database):
    def __init__(self):
        super().__init__(
            "postgres",
            lambda directory: [
                *(POSTGRESQL / "initdb", "--auth=trust", "--no-sync", "-D", directory / "data")
            ],
            lambda directory, port: [
                *(POSTGRESQL / "postgres", "-D", directory / "data", "-p", port, "-k", ""),
                *("-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "autovacuum=off"),
            ],
            "ready to accept connections",
        )

    def query(self):
        """Two requests, the login and the query, and a Terminate."""
        options = "host=127.0.0.1 user=postgres sslmode=disable gssencmode=disable"
        command = [POSTGRESQL / "psql", f"{options} port={self.port}", "-qAtXc", "select 1"]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)
        assert done.stdout == "1\n"


class MariaDB(_Database):
    def __init__(self, *options):
        super().__init__(
            "mysql",
            lambda directory: [
                *("mariadb-install-db", "--no-defaults", "--skip-test-db"),
                *("--auth-root-authentication-method=normal", f"--datadir={directory}/data"),
            ],
            lambda directory, port: [
                *("mariadbd", "--no-defaults", f"--datadir={directory}/data", f"--port={port}"),
                *("--bind-address=127.0.0.1", f"--socket={directory}/socket"),
                *("--skip-grant-tables", "--skip-networking=0", f"--pid-file={directory}/pid"),
                *options,
            ],
            "ready for connections",
        )

    def query(self):
        """The server speaks first; then requests as with PostgreSQL, and a COM_QUIT."""
        command = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{self.port}", "-uroot"]
        done = subprocess.run(
            [*command, "--skip-ssl", "-BNe", "select 1"],
            check=True,
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert done.stdout == "1\n"


class MariaDBClient:
    """As much of the protocol as it takes to close a prepared statement."""

    LOGIN = struct.pack("<IIB23x5sB", 0x00000200 | 0x00008000, 1 << 24, 33, b"root", 0)
    QUERY, PREPARE, CLOSE = b"\x03", b"\x16", b"\x19"

    def __init__(self, client, asking):
        self.client, self.asking = client, asking
        with self.asking:
            self._log_in()

    def _log_in(self):
        self._packet()
        self._send(self.LOGIN, 1)
        self._packet()

    def _take(self, size):
        data = b""
        while len(data) < size:
            part = self.client.recv(size - len(data))
            assert part
            data += part
        return data

    def _packet(self):
        return self._take(int.from_bytes(self._take(4)[:3], "little"))

    def _send(self, payload, sequence=0):
        self.client.sendall(struct.pack("<I", len(payload) | sequence << 24) + payload)

    def prepare(self):
        """One column and no parameter: its definition and its end follow."""
        with self.asking:
            self._send(self.PREPARE + b"SELECT 1")
            statement = self._packet()[1:5]
            self._packet(), self._packet()
        return statement

    def close(self, statement):
        self._send(self.CLOSE + statement)

    def set(self):
        with self.asking:
            self._send(self.QUERY + b"SET @x = 1")
            assert self._packet()[0] == 0
