# SPDX-License-Identifier: Apache-2.0
"""For tests of the secured endpoint: a CA, certificates, hashes, clients that use them."""

import base64
import http.client
import ssl
import subprocess


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Authority:
    """A CA below @folder."""

    def __init__(self, folder, name="ca"):
        self.folder = folder
        self.certificate = folder / f"{name}.crt"
        self.key = folder / f"{name}.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-days", 2, "-subj", f"/CN={name}", "-keyout", self.key, "-out",
                self.certificate)  # fmt: skip

    def issue(self, name, san, key="rsa:2048", usage="serverAuth,clientAuth"):
        """Writes @name.crt and @name.key, also over what is there; returns both."""
        folder = self.folder
        certificate, private = folder / f"{name}.crt", folder / f"{name}.key"
        request, extensions = folder / f"{name}.csr", folder / f"{name}.ext"
        curve = ["-pkeyopt", "ec_paramgen_curve:P-256"] if key == "ec" else []
        openssl("req", "-newkey", key, *curve, "-nodes", "-subj", f"/CN={name}", "-keyout", private,
                "-out", request)  # fmt: skip
        extensions.write_text(f"subjectAltName={san}\nextendedKeyUsage={usage}\n")
        openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key,
                "-CAcreateserial", "-days", 2, "-extfile", extensions, "-out",
                certificate)  # fmt: skip
        return certificate, private


def bcrypt(password, cost=5):
    command = ["htpasswd", "-nbBC", str(cost), "", password]
    line = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return line.strip().lstrip(":")


def basic(user, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


class Client:
    """Asks over TLS (with @authority) or without; each request on a connection of its own."""

    def __init__(self, port, authority=None, certificate=None, headers=None, source=None):
        self.port = port
        self.source = (source, 0) if source else None
        self.headers = headers or {}
        self.context = None
        if authority:
            self.context = ssl.create_default_context(cafile=authority.certificate)
            if certificate:
                self.context.load_cert_chain(*certificate)

    def connect(self, timeout=20):
        if self.context:
            return http.client.HTTPSConnection(
                "localhost", self.port, timeout=timeout, context=self.context,
                source_address=self.source,
            )  # fmt: skip
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout, self.source)

    def get(self, path="/metrics", method="GET"):
        """(status, headers, body)"""
        connection = self.connect()
        try:
            connection.request(method, path, headers=self.headers)
            response = connection.getresponse()
            return response.status, response.headers, response.read().decode()
        finally:
            connection.close()

    def status(self, path="/metrics"):
        return self.get(path)[0]

    def refused(self):
        """Whether no connection can be had; with TLS 1.3 a client learns it with its first read."""
        try:
            self.get()
        except (OSError, http.client.HTTPException):
            return True
        return False

    def peer(self):
        """The certificate that the server shows, as DER."""
        connection = self.connect()
        try:
            connection.connect()
            return connection.sock.getpeercert(binary_form=True)
        finally:
            connection.close()
