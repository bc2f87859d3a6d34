# SPDX-License-Identifier: Apache-2.0
"""
Services under test, each in a process group of its own that its stop() ends, and only that.

Bundled programs are copied to a name of their own, so that the `workload` label, which is the
executable's name, belongs to one test alone. Names hold letters only: digits in the name of a
thread would be normalised.
"""

import contextlib
import ctypes
import json
import os
import random
import shutil
import signal
import socket
import string
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from exporter import BUILD

# Tests that run side by side (pytest-xdist) share neither ports nor files.
_SIDE = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_SIDES = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))

WORKLOADS = BUILD / "workloads"
WORKLOADS_SOURCES = Path(__file__).parents[1] / "workloads"
SCRATCH = BUILD / "live" / str(_SIDE)
READY_SECONDS = 60
NOBODY = 65534


def in_own_network(**settings):
    """Executes the command that follows in a network of its own, with other values of net.ipv4."""
    set_up = [f"echo {value} > /proc/sys/net/ipv4/{name}" for name, value in settings.items()]
    script = " && ".join(["ip link set lo up", *set_up, 'exec "$@"'])
    return ["unshare", "--net", "sh", "-c", script, "sh"]


def user(*capabilities, uid=NOBODY):
    """Runs a command as a user without privileges, but with exactly these capabilities."""
    chosen = ",".join(["-all", *(f"+{name}" for name in capabilities)])
    return [
        "setpriv",
        f"--reuid={uid}",
        f"--regid={uid}",
        "--clear-groups",
        f"--inh-caps={chosen}",
        f"--ambient-caps={chosen}",
        f"--bounding-set={chosen}",
    ]


IN_OWN_NETWORK = in_own_network()
# With TCP Fast Open for clients and servers without cookies, and for every listener.
WITH_FAST_OPEN = in_own_network(tcp_fastopen=1543)


def unique_name(prefix):
    return prefix[:8] + "_" + "".join(random.choices(string.ascii_lowercase, k=5))


# Below those which the kernel gives to clients. None is used twice: a workload that has ended is
# still shown for a while, and would have the same label.
_PORTS = iter(random.sample(range(20000 + _SIDE, 32000, _SIDES), 12000 // _SIDES))


def free_port():
    """A port that nobody uses and no test has used."""
    for port in _PORTS:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise AssertionError("no free port")


def wait_until(holds, seconds, what):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def _children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def _states(pid):
    """Those of all threads of a process and of its children."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    own = {(task / "stat").read_text().rsplit(") ", 1)[1][0] for task in tasks}
    return own.union(*map(_states, _children(pid)))


def status_of(pid):
    """The fields of a process's status (proc_pid_status(5)), by name."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines)


def _arguments(**options):
    return [f"--{key.replace('_', '-')}={value}" for key, value in options.items()]


class Process:
    """A process group."""

    def __init__(self, command, **options):
        self.process = subprocess.Popen(
            [str(word) for word in command], start_new_session=True, **options
        )

    @property
    def pid(self):
        return self.process.pid

    def wait_for_rest(self):
        """Until all threads of it and of its children sleep: what they do next is for another reason."""
        wait_until(
            lambda: _states(self.pid) == {"S"},
            READY_SECONDS,
            f"{self.process.args} does not come to rest",
        )

    def stop(self):
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream:
                stream.close()


@contextlib.contextmanager
def starter():
    """start(Kind, ...) starts one; all have ended when the block is left."""
    started = []

    def start(kind, *arguments, **options):
        started.append(kind(*arguments, **options))
        return started[-1]

    try:
        yield start
    finally:
        for process in reversed(started):
            process.stop()


def own_copy(program, name=None):
    """A bundled program under a further name of its own."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    path = SCRATCH / (name or unique_name(program))
    if not path.exists():
        # Not a copy: while one is written, the child of another thread may hold it open as well, and
        # what is open for writing cannot be executed.
        os.link(WORKLOADS / program, path)
    return path


def program_copy(program, name):
    """An installed program under another name; what it links with, it finds all the same."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    return shutil.copy(shutil.which(program) or program, SCRATCH / name)


def python_link(name):
    """The interpreter under another name, by which a workload of it is called."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    (SCRATCH / name).symlink_to("/usr/bin/python3")
    return SCRATCH / name


class Service(Process):
    """A bundled service (tests/workloads): says `ready PORT`, obeys ask()."""

    def __init__(self, program, *, name=None, port=None, prefix=(), **options):
        self.path = program if isinstance(program, Path) else own_copy(program, name)
        self.name = self.path.name
        self.begin([*prefix, self.path, *_arguments(port=port or free_port(), **options)])

    def begin(self, command, **options):
        pipe = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        super().__init__(command, **pipe, **options)
        words = self.process.stdout.readline().split()
        if not words or words[0] != "ready":
            self.stop()
            raise AssertionError(f"{self.name} did not start: {words}")
        self.port = int(words[1])

    def ask(self, command):
        """Gives a command and returns what the service answers."""
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = {}
        while True:
            line = self.process.stdout.readline().split()
            assert line, f"{self.name} ended during {command}"
            if line == ["ok"]:
                return answer
            answer[line[0]] = int(line[1])


class Burner(Service):
    """A burner of another language, by its @command; @name: of its workload, that of the program."""

    def __init__(self, command, *, name=None, **environment):
        self.name = name or Path(command[0]).name
        others = {name: text for name, text in os.environ.items() if "JAVA" not in name}
        SCRATCH.mkdir(parents=True, exist_ok=True)
        # V8 leaves a log where it runs, if it tells of functions that are not compiled.
        self.begin(command, env={**others, **environment}, cwd=SCRATCH)


class Load(Process):
    """pool_client against @port; finish() waits for its report, stop() does not."""

    def __init__(self, port, *, prefix=(), **options):
        super().__init__(
            [*prefix, WORKLOADS / "pool_client", *_arguments(port=port, **options)],
            stdout=subprocess.PIPE,
            text=True,
        )

    def interrupt(self):
        self.process.terminate()
        return self.finish()

    def finish(self, seconds=60):
        text, _ = self.process.communicate(timeout=seconds)
        assert self.process.returncode == 0
        lines = (line.split() for line in text.splitlines() if line != "ok")
        return {key: int(value) for key, value in lines}


def nginx_conf(directory, port, workers, location, listen="", address="127.0.0.1"):
    """
    The text of a configuration: @location for every request, on connections that may stay.
    @listen: options of the port, and what else belongs to the server.
    """
    return f"""
daemon off;
user root;
worker_processes {workers};
pid {directory}/nginx.pid;
error_log {directory}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    server {{
        listen {address}:{port} {listen};
        location / {{ {location} }}
    }}
}}
"""


def certificate(directory):
    """Makes one that nobody trusts; the paths of it and of its key."""
    files = [Path(directory) / "certificate", Path(directory) / "key"]
    make = "openssl req -x509 -newkey ed25519 -nodes -subj /CN=localhost -days 1".split()
    subprocess.run([*make, "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    return files


def nginx_tls(directory, options=""):
    """@listen of an nginx that speaks TLS 1.3, with a certificate in @directory; @options of its port."""
    files = certificate(directory)
    return (
        f"ssl {options}; ssl_protocols TLSv1.3;"
        f" ssl_certificate {files[0]}; ssl_certificate_key {files[1]}"
    )


class TlsServer(Process):
    """
    workloads/tls_server.py, with a certificate in @directory; @tickets: of each handshake; @pause: in
    milliseconds, before an answer.
    """

    def __init__(self, directory, tickets=2, pause=0):
        self.port = free_port()
        files = certificate(directory)
        super().__init__(
            ["/usr/bin/python3", WORKLOADS_SOURCES / "tls_server.py", self.port, *files]
            + [tickets, pause],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout.readline() == "ready\n"


class HttpScript(Process):
    """workloads/http_script.py, with @steps."""

    def __init__(self, steps):
        self.port = free_port()
        super().__init__(
            ["/usr/bin/python3", WORKLOADS_SOURCES / "http_script.py", self.port, json.dumps(steps)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout.readline() == "ready\n"


class Nginx(Process):
    """
    nginx with two workers and a short answer, or @location's; @options: see nginx_conf(). @prefix is a
    command that executes the one that follows.
    """

    def __init__(self, directory, location='return 200 "hello\\n";', prefix=(), **options):
        self.port = free_port()
        conf = Path(directory) / "nginx.conf"
        conf.write_text(nginx_conf(directory, self.port, 2, location, **options))
        super().__init__(
            [*prefix, program_copy("nginx", unique_name("nginx")), "-c", conf]
            + ["-p", directory, "-e", f"{directory}/error.log"]
        )
        wait_until(
            lambda: len(list(_children(self.pid))) >= 2, READY_SECONDS, "nginx did not start"
        )


class FarNetwork(Process):
    """
    Two hosts in network namespaces of their own, a round trip of 20 ms apart at 10 Mbit/s:
    workloads/far_network.py. Services run on the one (@on_server executes the command that follows
    there, at SERVER); connect() is from the other.
    """

    SERVER = "10.77.0.2"
    DELAY_MS, MBIT = 10, 10

    def __init__(self):
        super().__init__(
            ["/usr/bin/python3", "-B", WORKLOADS_SOURCES / "far_network.py", self.DELAY_MS, self.MBIT],
            stdout=subprocess.PIPE,
            text=True,
        )
        words = self.process.stdout.readline().split()
        assert words and words[0] == "ready", "there are no two hosts"
        self.client, server = words[1:]
        self.on_server = ["nsenter", f"--target={server}", "--net"]

    def connect(self, port):
        """A thread is in a network of its own, and the socket stays in that where it was made."""
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(self._connect, port).result()

    def _connect(self, port):
        with open(f"/proc/{self.client}/ns/net") as network:
            assert ctypes.CDLL(None).setns(network.fileno(), 0) == 0
        return socket.create_connection((self.SERVER, port), 10)


class Redis(Process):
    """redis-server without persistence, with further @options."""

    def __init__(self, directory, *options):
        self.port = free_port()
        super().__init__(
            [program_copy("redis-server", unique_name("redis")), "--port", self.port]
            + ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", directory]
            + list(options),
            stdout=subprocess.PIPE,
            text=True,
        )
        for line in self.process.stdout:
            if "Ready to accept connections" in line:
                return
        raise AssertionError("redis did not start")


def java_program(home, own_home, name, inside=Path):
    """
    The `java` program of @home under another name, in a new folder. It finds its runtime relative to
    where it lies, so that is linked beside it; inside(path) is how the program sees a path.
    """
    (own_home / "bin").mkdir(parents=True)
    for part in ("lib", "conf"):
        (own_home / part).symlink_to(inside(home / part))
    return inside(Path(shutil.copy(home / "bin" / "java", own_home / "bin" / name)))


def own_java(name):
    """That of this machine's `java`."""
    home = Path(shutil.which("java")).resolve().parents[1]
    return java_program(home, SCRATCH / f"{name}.home", name)


def own_go(source, **environment):
    """A program of its own name, in Go (workloads/*.go); @environment: of the compiler."""
    path = Path(__file__).parent.parent / "workloads" / f"{source}.go"
    words = "-".join([source, *environment, *environment.values()])
    program = SCRATCH.resolve() / words
    SCRATCH.mkdir(parents=True, exist_ok=True)
    if not program.exists():
        own = {"GOCACHE": str(program.parent / "go"), "GO111MODULE": "off"}
        subprocess.run(
            ["go", "build", "-o", program, path], env={**os.environ, **own, **environment}, check=True
        )
    own = program.parent / unique_name(source)
    os.link(program, own)
    return own


class Tasks(Process):
    """A service of goroutines (workloads/tasks.go)."""

    def __init__(self):
        own = own_go("tasks")
        super().__init__(
            [own, free_port()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        words = self.process.stdout.readline().split()
        assert words and words[0] == "ready", "the service of goroutines did not start"
        self.port = int(words[1])


class JavaPool(Process):
    """A Java fixed thread pool (workloads/JavaPool.java) that may have nothing to do."""

    def __init__(self, threads, upstream_port=0):
        classes = SCRATCH / "classes"
        source = Path(__file__).parent.parent / "workloads" / "JavaPool.java"
        if not (classes / "JavaPool.class").exists():
            subprocess.run(["javac", "-d", classes, source], check=True)
        super().__init__(
            [own_java(unique_name("java")), "-cp", classes, "JavaPool", threads, free_port()]
            + [upstream_port],
            stdout=subprocess.PIPE,
            text=True,
        )
        words = self.process.stdout.readline().split()
        assert words and words[0] == "ready", "java did not start"
        self.port = int(words[1])
