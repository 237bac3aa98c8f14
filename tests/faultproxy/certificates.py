"""A certificate authority of the test's own, for proxies on loopback."""

import pathlib
import ssl
import subprocess

EXTENSIONS = """[ca]
basicConstraints=critical,CA:TRUE
keyUsage=critical,keyCertSign
[server]
basicConstraints=CA:FALSE
extendedKeyUsage=serverAuth
subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1
"""


class Certificates:
    """Made in `folder` by the program openssl: ca.crt, and a server's pair signed by it."""

    def __init__(self, folder):
        self._folder = pathlib.Path(folder)
        (self._folder / "extensions").write_text(EXTENSIONS)
        for name in ("ca", "server"):
            self._openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")
            self._openssl("req", "-new", "-key", f"{name}.key", "-subj", f"/CN=faultproxy-{name}",
                          "-out", f"{name}.csr")  # fmt: skip
        sign = ["x509", "-req", "-days", "30", "-extfile", "extensions"]
        self._openssl(*sign, "-extensions", "ca", "-in", "ca.csr", "-signkey", "ca.key",
                      "-out", "ca.crt")  # fmt: skip
        self._openssl(*sign, "-extensions", "server", "-in", "server.csr", "-CA", "ca.crt",
                      "-CAkey", "ca.key", "-CAcreateserial", "-out", "server.crt")  # fmt: skip

    def _openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self._folder, check=True, capture_output=True)

    @property
    def authority(self):
        """The CA's certificate as PEM, for the client's kubeconfig."""
        return (self._folder / "ca.crt").read_bytes()

    def server_context(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._folder / "server.crt", self._folder / "server.key")
        return context
