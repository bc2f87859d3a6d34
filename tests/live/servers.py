# SPDX-License-Identifier: Apache-2.0
"""
Real servers of other people's, each with four workers of which one request takes 50 ms, or at rest.

Each runs a copy of its program under a name of its own, which is the `workload` label, in a
directory that other users can read: some of them give root away.
"""

import os
import shutil
import subprocess
import tempfile
from glob import glob
from pathlib import Path

from services import (
    SCRATCH,
    Process,
    Service,
    free_port,
    nginx_conf,
    own_java,
    program_copy,
    python_link,
    unique_name,
)

WORKERS = 4
WORK_MS = 50
CLIENTS = 16
SOURCES = Path(__file__).parent.parent / "workloads"


class Server(Process):
    """Listens on `port`; `name` is its workload."""

    def __init__(self, name, command, **options):
        self.name = name
        super().__init__(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **options)


class Directory:
    """For what a server reads; removed with stop(). Files are given as {name: text}."""

    def __init__(self, **files):
        self.path = Path(tempfile.mkdtemp(prefix="workload_"))
        self.path.chmod(0o755)
        for name, text in files.items():
            (self.path / name.replace("_", ".")).write_text(text)

    def stop(self):
        shutil.rmtree(self.path, ignore_errors=True)


def python(start, port):
    """gunicorn: a master and workers of one thread, all of one name."""
    app = f"""
import time
def app(environ, start_response):
    time.sleep({WORK_MS / 1000})
    start_response("200 OK", [("Content-Length", "1")])
    return [b"x"]
"""
    name = unique_name("gunicorn")
    return start(
        Server,
        name,
        [python_link(name), "-m", "gunicorn", "--log-level=critical"]
        + ["--workers", WORKERS, "--bind", f"127.0.0.1:{port}"]
        + ["--pythonpath", start(Directory, app_py=app).path, "app:app"],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )


def php(start, port, work=f"usleep({WORK_MS * 1000});", options=()):
    """PHP-FPM behind nginx, which is not looked at."""
    own = free_port()
    name = unique_name("phpfpm")
    place = start(
        Directory,
        index_php=f"<?php {work} echo 'x';",
        fpm_conf=f"""
[global]
error_log = /dev/null
[www]
user = root
listen = 127.0.0.1:{own}
pm = static
pm.max_children = {WORKERS}
""",
    )
    front = nginx_conf(
        place.path,
        port,
        workers=1,
        location=f"fastcgi_pass 127.0.0.1:{own};"
        f" fastcgi_param SCRIPT_FILENAME {place.path}/index.php;"
        " fastcgi_param REQUEST_METHOD GET;",
    )
    (place.path / "nginx.conf").write_text(front)
    (found,) = glob("/usr/sbin/php-fpm*.*")
    server = start(
        Server,
        name,
        [program_copy(found, name), "-F", "-R", "-n", "-y", place.path / "fpm.conf", *options],
        stderr=subprocess.DEVNULL,
    )
    start(Process, ["nginx", "-c", place.path / "nginx.conf", "-e", place.path / "error.log"])
    return server


def _httpd(start, place, port, modules, rules):
    """Apache without its distribution's configuration; its socket defers (TCP_DEFER_ACCEPT)."""
    loaded = "\n".join(
        f"LoadModule {module}_module /usr/lib/apache2/modules/mod_{module}.so" for module in modules
    )
    (place.path / "httpd.conf").write_text(
        f"""
ServerRoot {place.path}
ServerName localhost
{loaded}
User nobody
Group nogroup
PidFile {place.path}/pid
DefaultRuntimeDir {place.path}
Mutex default:{place.path}
ErrorLog {place.path}/error.log
Listen 127.0.0.1:{port}
{rules}
"""
    )
    name = unique_name("httpd")
    return start(
        Server,
        name,
        [program_copy("/usr/sbin/apache2", name), "-DFOREGROUND", "-f", place.path / "httpd.conf"],
    )


def apache(start, port, model, limits):
    place = start(
        Directory, work_lua=f"function handle(r) r.usleep({WORK_MS * 1000}) r:puts('x') return 0 end"
    )
    rules = f"KeepAlive Off\n{limits}\nLuaMapHandler ^/ {place.path}/work.lua handle"
    return _httpd(start, place, port, (f"mpm_{model}", "authz_core", "lua"), rules)


def webdav(start, port):
    """Apache with methods beyond those of HTTP itself, on connections that stay open."""
    place = start(Directory)
    (place.path / "files").mkdir(mode=0o777)
    (place.path / "files").chmod(0o777)
    rules = f"""
KeepAlive On
MaxKeepAliveRequests 0
DocumentRoot {place.path}/files
DavLockDB {place.path}/files/.locks
<Directory {place.path}/files>
    Dav On
</Directory>
"""
    return _httpd(start, place, port, ("mpm_event", "authz_core", "dav", "dav_fs"), rules)


def connecting(start, port, upstream):
    """Apache that connects whoever asks to port @upstream, and else speaks HTTP/2 on request."""
    place = start(Directory)
    rules = f"""
KeepAlive On
Protocols h2c http/1.1
H2Upgrade on
ProxyRequests On
AllowCONNECT {upstream}
"""
    modules = ("mpm_event", "authz_core", "http2", "proxy", "proxy_connect")
    return _httpd(start, place, port, modules, rules)


def websocket(start, port):
    """It answers a message "ask", and nothing else."""
    name = unique_name("socket")
    work = f"""
import asyncio, websockets
async def serve(socket):
    async for message in socket:
        if message == "ask":
            await socket.send("answer")
async def main():
    async with websockets.serve(serve, "127.0.0.1", {port}, ping_interval=None):
        await asyncio.Future()
asyncio.run(main())
"""
    return start(Server, name, [python_link(name), "-c", work])


def grpc(start, port, files=()):
    """It answers /test.Echo/Ask with what it was asked; @files: its certificate and key, in TLS."""
    name = unique_name("grpc")
    work = f"""
import concurrent.futures, grpc
ask = grpc.unary_unary_rpc_method_handler(lambda request, context: request)
server = grpc.server(concurrent.futures.ThreadPoolExecutor({WORKERS}))
handler = grpc.method_handlers_generic_handler("test.Echo", {{"Ask": ask}})
server.add_generic_rpc_handlers((handler,))
files = [open(file, "rb").read() for file in {[str(file) for file in files]}]
if files:
    server.add_secure_port("localhost:{port}", grpc.ssl_server_credentials([files[::-1]]))
else:
    server.add_insecure_port("localhost:{port}")
server.start()
server.wait_for_termination()
"""
    return start(Server, name, [python_link(name), "-c", work])


def apache_prefork(start, port):
    limits = f"StartServers {WORKERS}\nMinSpareServers {WORKERS}\nMaxSpareServers {WORKERS}\n"
    return apache(start, port, "prefork", limits + f"MaxRequestWorkers {WORKERS}")


def apache_event(start, port):
    limits = f"StartServers 1\nServerLimit 1\nThreadsPerChild {WORKERS}\nMinSpareThreads 1\n"
    return apache(start, port, "event", limits + f"MaxRequestWorkers {WORKERS}")


def node(start, port):
    """One thread serves, of some that share its name; what it does blocks its loop."""
    name = unique_name("node")
    work = f"""
const cell = new Int32Array(new SharedArrayBuffer(4));
require("http").createServer((request, response) => {{
    Atomics.wait(cell, 0, 0, {WORK_MS});
    response.end("x");
}}).listen({port}, "127.0.0.1", 511);
"""
    return start(Server, name, [program_copy("node", name), "-e", work])


def node_refusing(start, port):
    """It answers before it has read a body, and reads all that is there at once."""
    name = unique_name("node")
    work = f"""
require("http").createServer((request, response) => {{
    response.statusCode = 403;
    response.end("no\\n");
}}).listen({port}, "127.0.0.1");
"""
    return start(Server, name, [program_copy("node", name), "-e", work])


def node_hinting(start, port, pause_ms):
    """It hints at once, and answers later, when it has read a body, if there is one."""
    name = unique_name("node")
    work = f"""
require("http").createServer((request, response) => {{
    response.writeEarlyHints({{ link: "</style.css>; rel=preload; as=style" }});
    request.resume().on("end", () => setTimeout(() => response.end("ok\\n"), {pause_ms}));
}}).listen({port}, "127.0.0.1");
"""
    return start(Server, name, [program_copy("node", name), "-e", work])


ASYNCIO_ROOM = 200_000  # that it asks for; the kernel gives twice as much, and counts more than the bytes


def asyncio(start, port, *answer, selector="EpollSelector"):
    """
    Reads 100 bytes and gives the answer, of which each part is a number of bytes to send or a pause in
    seconds; again and again.
    """
    name = unique_name("asyncio")
    work = f"""
import asyncio, selectors, socket
async def serve(reader, writer):
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, {ASYNCIO_ROOM})
    while await reader.read(100):
        for part in {answer}:
            if isinstance(part, int):
                writer.write(bytes(part))
            else:
                await asyncio.sleep(part)
    writer.close()
async def main():
    await (await asyncio.start_server(serve, "127.0.0.1", {port})).serve_forever()
asyncio.SelectorEventLoop(selectors.{selector}()).run_until_complete(main())
"""
    return start(Server, name, [python_link(name), "-c", work])


def forking(start, port, end):
    """
    Each connection has a process, which answers one request, reads another and does @end then: with the
    only descriptor of it, for the process above closes its own before the first answer.
    """
    name = unique_name("forking")
    work = f"""
import os, signal, socketserver, sys
closed = os.pipe()
class Talk(socketserver.BaseRequestHandler):
    def handle(self):
        os.read(closed[0], 1)
        self.request.sendall(self.request.recv(100))
        self.request.recv(100)
        {end}
class Server(socketserver.ForkingTCPServer):
    request_queue_size = 128
    def close_request(self, request):
        super().close_request(request)
        os.write(closed[1], b".")
Server(("127.0.0.1", {port}), Talk).serve_forever()
"""
    return start(Server, name, [python_link(name), "-c", work])


def haproxy(start, port, server, mode="http", bind="", request_seconds=60):
    """In front of @server, an address with options."""
    place = start(
        Directory,
        haproxy_cfg=f"""
defaults
    mode {mode}
    timeout connect 10s
    timeout client 60s
    timeout server 60s
    timeout http-request {round(request_seconds * 1000)}ms
listen front
    bind 127.0.0.1:{port} {bind}
    server behind {server}
""",
    )
    name = unique_name("haproxy")
    return start(
        Server,
        name,
        [program_copy("haproxy", name), "-db", "-q", "-f", place.path / "haproxy.cfg"],
    )


def syslog(start, port):
    """It writes the messages of each line that it gets to messages.log in its directory, .place."""
    place = start(Directory)
    (place.path / "rsyslog.conf").write_text(f"""
global(workDirectory="{place.path}")
module(load="imtcp")
input(type="imtcp" port="{port}" address="127.0.0.1")
action(type="omfile" file="{place.path}/messages.log")
""")
    name = unique_name("rsyslogd")
    command = [program_copy("rsyslogd", name), "-n", "-f", place.path / "rsyslog.conf"]
    server = start(Server, name, [*command, "-i", place.path / "pid"])
    server.place = place.path
    return server


def ftp(start, port, data):
    """Whoever comes may put files into its directory, .place, by passive connections to port @data."""
    place = start(Directory)
    (place.path / "files").mkdir()
    name = unique_name("ftp")
    command = [python_link(name), "-m", "pyftpdlib", "--interface=127.0.0.1", f"--port={port}"]
    options = [f"--range={data}-{data}", "--write"]
    server = start(Server, name, [*command, *options, f"--directory={place.path}/files"])
    server.place = place.path / "files"
    return server


def threads(start, port):
    """A pool of a native program that gives its threads no names."""
    return start(
        Service, "pool_server", port=port, mode="queue", workers=WORKERS, named=0,
        service_us=WORK_MS * 1000,
    )  # fmt: skip


def tomcat(start, port):
    """On a port of five digits: after 15 bytes acceptor, poller and workers have one name."""
    classes = SCRATCH / "tomcat"
    jars = (f"/usr/share/java/tomcat10-{part}.jar" for part in ("embed-core", "annotations-api"))
    path = ":".join((str(classes), *jars))
    if not (classes / "TomcatPool.class").exists():
        subprocess.run(
            ["javac", "-nowarn", "-Xlint:-deprecation", "-cp", path, "-d", classes, SOURCES / "TomcatPool.java"], check=True
        )
    name = unique_name("tomcat")
    return start(
        Server,
        name,
        [own_java(name), "-cp", path, "TomcatPool", port, WORKERS, WORK_MS],
        stderr=subprocess.DEVNULL,
    )


SATURABLE = {
    "gunicorn": python,
    "php-fpm": php,
    "apache prefork": apache_prefork,
    "apache event": apache_event,
    "node": node,
    "native": threads,
    "tomcat": tomcat,
}


def memcached(start, port):
    name = unique_name("memcache")
    command = [program_copy("memcached", name), "-u", "root", "-l", "127.0.0.1", "-p", port]
    return start(Server, name, command)


def varnish(start, port):
    name = unique_name("varnish")
    return start(
        Server,
        name,
        [program_copy("varnishd", name), "-F", "-a", f"127.0.0.1:{port}", "-b", "none"]
        + ["-n", start(Directory).path, "-s", "malloc,16m", "-j", "none"],
        stderr=subprocess.DEVNULL,
    )


def erlang(start, port):
    """What RabbitMQ runs on."""
    name = unique_name("erlang")
    root = Path("/usr/lib/erlang")
    (erts,) = root.glob("erts-*")
    work = f"""
{{ok, L}} = gen_tcp:listen({port}, [binary, {{active, false}}, {{ip, {{127,0,0,1}}}}]),
(fun F() -> {{ok, S}} = gen_tcp:accept(L), gen_tcp:recv(S, 0), gen_tcp:send(S, "x"),
    gen_tcp:close(S), F() end)().
"""
    # As erlexec starts it.
    return start(
        Server,
        name,
        [program_copy(erts / "bin" / "beam.smp", name), "--", "-root", root, "-bindir"]
        + [erts / "bin", "-progname", "erl", "--", "-home", "/tmp", "--"]
        + ["-noshell", "-eval", work],
        env={**os.environ, "BINDIR": str(erts / "bin"), "ROOTDIR": str(root), "EMU": "beam"},
    )


# Whose housekeepers sleep or poll while nobody is served.
RESTING = {"memcached": memcached, "varnish": varnish, "erlang": erlang}


class HttpLoad(Process):
    """Clients that ask again as soon as they are answered, until stop()."""

    def __init__(self, port, clients=CLIENTS):
        super().__init__(
            ["ab", "-q", "-r", "-s", "60", "-c", clients, "-t", "600", "-n", "100000000"]
            + [f"http://127.0.0.1:{port}/"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
