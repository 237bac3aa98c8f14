"""Who we are and whom we trust: certificates, tokens, plugins, their rotation."""

import contextlib
import http.server
import json
import os
import socket
import ssl
import subprocess
import threading

import pytest

from probe_rig import Authority, Probe, ask, data, probe_path

GET = ("get", "namespaces", "", "default")


def succeeded(line):
    return line.get("reply", {}).get("kind") == "Namespace"


def test_client_certificate_from_files_and_from_data(plane, tmp_path):
    assert succeeded(ask(plane.kubeconfig(tmp_path / "files"), *GET))
    pki = plane.folder / "pki"
    inline = plane.kubeconfig(
        tmp_path / "data",
        {"client-certificate-data": data(pki / "admin.crt"), "client-key-data": data(pki / "admin.key")},
        **{"certificate-authority": None, "certificate-authority-data": data(plane.ca)},
    )
    assert succeeded(ask(inline, *GET))


def test_relative_paths_start_at_the_kubeconfig(plane, tmp_path):
    folder = tmp_path / "deep"
    folder.mkdir()
    for name in ("ca.crt", "admin.crt", "admin.key"):
        (folder / name).write_bytes((plane.folder / "pki" / name).read_bytes())
    config = plane.kubeconfig(folder / "config", {"client-certificate": "admin.crt", "client-key": "./admin.key"},
                              **{"certificate-authority": "../deep/ca.crt"})  # fmt: skip
    assert succeeded(ask(config, *GET))


def test_bearer_token(plane, tmp_path):
    assert succeeded(ask(plane.kubeconfig(tmp_path / "good", {"token": "token-one"}), *GET))
    refused = ask(plane.kubeconfig(tmp_path / "bad", {"token": "wrong"}), *GET)
    assert refused["error"] == "Unauthorized"


def test_another_ca_is_refused_although_the_system_trusts_the_server(plane, tmp_path):
    trusting = {"SSL_CERT_FILE": str(plane.ca)}
    system = plane.kubeconfig(tmp_path / "system", **{"certificate-authority": None})
    assert succeeded(ask(system, *GET, environment=trusting)), "no CA given: the system's are used"
    other = Authority(tmp_path).certificate
    wrong = plane.kubeconfig(tmp_path / "wrong", **{"certificate-authority": str(other)})
    line = ask(wrong, *GET, environment=trusting)
    assert line["error"] == "Unavailable"
    assert "certificate is not trusted" in line["message"], line
    skipped = plane.kubeconfig(tmp_path / "skip", **{"certificate-authority": None,
                                                     "insecure-skip-tls-verify": True})  # fmt: skip
    assert succeeded(ask(skipped, *GET))


def test_the_name_is_verified(plane, tmp_path):
    by_name = plane.kubeconfig(tmp_path / "name", server=f"https://localhost:{plane.port}")
    assert succeeded(ask(by_name, *GET))
    other = plane.kubeconfig(tmp_path / "other", **{"tls-server-name": "kubernetes.default.svc"})
    assert succeeded(ask(other, *GET))
    wrong = ask(plane.kubeconfig(tmp_path / "wrong", **{"tls-server-name": "wrong.example"}), *GET)
    assert wrong["error"] == "Unavailable"
    assert "wrong.example" in wrong["message"], wrong


class TlsServer:
    """A TLS server for one address that notes what clients sent; it is no API server."""

    def __init__(self, family, host, certificate, key):
        seen = self.seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                seen.append((self.path, self.headers["Host"], self.headers.get("Authorization")))
                body = b'{"kind":"Namespace"}'
                self.send_response(302 if "redirect" in self.path else 200)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            address_family = family

        self.server = Server((host, 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.names = []
        context.sni_callback = lambda _socket, name, _context: self.names.append(name)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def test_ipv6_address_and_no_server_name_for_it(plane, tmp_path):
    if not socket.has_ipv6 or not os.path.exists("/proc/net/if_inet6"):
        pytest.skip("this machine has no IPv6")
    certificate, key = plane.authority(tmp_path).issue("six", "/CN=x", "subjectAltName=IP:::1")
    server = TlsServer(socket.AF_INET6, "::1", certificate, key)
    try:
        url = f"https://[::1]:{server.port}"
        config = plane.kubeconfig(tmp_path / "c", {"token": "secret"}, server=url)
        assert succeeded(ask(config, *GET))
        assert server.seen == [("/api/v1/namespaces/default", f"[::1]:{server.port}", "Bearer secret")]
        assert server.names == [None]
    finally:
        server.close()


def test_server_name_indication_a_path_prefix_and_no_redirects(plane, tmp_path):
    certificate, key = plane.authority(tmp_path).issue("n", "/CN=x", "subjectAltName=DNS:api.test")
    server = TlsServer(socket.AF_INET, "127.0.0.1", certificate, key)
    try:
        url = f"https://127.0.0.1:{server.port}"
        config = plane.kubeconfig(tmp_path / "c", {"token": "secret"}, server=url + "/k8s/c-1/",
                                  **{"tls-server-name": "api.test"})  # fmt: skip
        assert succeeded(ask(config, *GET))
        assert server.names == ["api.test"]
        assert server.seen[0][0] == "/k8s/c-1/api/v1/namespaces/default"
        redirected = ask(config, "get", "namespaces", "", "redirect")
        assert redirected["error"] == "Internal"
        assert len(server.seen) == 2, "a redirect must not carry the token elsewhere"
    finally:
        server.close()


def test_proxy(plane, tmp_path):
    seen = []

    def pump(source, target):
        with contextlib.suppress(OSError):  # either end may close first
            while block := source.recv(65536):
                target.sendall(block)
            target.shutdown(socket.SHUT_WR)

    def serve(listener):
        client, _ = listener.accept()
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(1000)
        seen.append(head.decode())
        server = socket.create_connection(("127.0.0.1", plane.port))
        client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        threading.Thread(target=pump, args=(server, client), daemon=True).start()
        pump(client, server)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        url = f"http://me:pass%21@127.0.0.1:{listener.getsockname()[1]}"
        assert succeeded(ask(plane.kubeconfig(tmp_path / "c", **{"proxy-url": url}), *GET))
    assert seen[0].startswith(f"CONNECT 127.0.0.1:{plane.port} ")
    assert "Proxy-Authorization: Basic bWU6cGFzcyE=" in seen[0]  # me:pass!
    socks = ask(plane.kubeconfig(tmp_path / "s", **{"proxy-url": "socks5://127.0.0.1:1"}), *GET)
    assert socks["error"] == "InvalidArgument" and "proxy-url" in socks["message"]


def outcome(wanted):
    return lambda line: line.get("outcome") == wanted


def test_rotated_token_file(plane, tmp_path):
    token = tmp_path / "token"
    token.write_text("token-one\n")
    config = plane.kubeconfig(tmp_path / "c", {"tokenFile": "token"})
    with Probe(config, "loop", "namespaces", "", "default", "600") as probe:
        probe.next("the first token", outcome("OK"))
        token.write_text("expired")
        probe.next("a token that is refused", outcome("Unauthorized"))
        token.write_text("token-two")
        probe.next("the second token", outcome("OK"))


def test_a_refused_token_is_looked_for_at_once(plane, tmp_path):
    # Replaced in the same second in which it was read: the 401 makes the client look again.
    token = tmp_path / "token"
    token.write_text("token-one")
    config = plane.kubeconfig(tmp_path / "c", {"tokenFile": "token", "token": "unused"})
    with Probe(config, "loop", "namespaces", "", "default", "600") as probe:
        probe.next("the first token", outcome("OK"))
        os.replace(_written(tmp_path / "new", "expired"), token)
        probe.next("the refusal", outcome("Unauthorized"))
        os.replace(_written(tmp_path / "new", "token-two"), token)
        probe.next("the second token", outcome("OK"))


def _written(path, text):
    path.write_text(text)
    return path


def test_rotated_client_certificate_and_ca(plane, tmp_path):
    authority = plane.authority(tmp_path)
    nobody = authority.issue("nobody", "/CN=nobody", "extendedKeyUsage=clientAuth")
    admin = authority.issue("boss", "/O=system:masters/CN=boss", "extendedKeyUsage=clientAuth")
    files = {name: tmp_path / name for name in ("tls.crt", "tls.key", "ca.crt")}

    def place(name, source):
        os.replace(_written(tmp_path / "new", source.read_text()), files[name])

    place("tls.crt", nobody[0])
    place("tls.key", nobody[1])
    place("ca.crt", plane.ca)
    config = plane.kubeconfig(tmp_path / "c", {"client-certificate": "tls.crt", "client-key": "tls.key"},
                              **{"certificate-authority": "ca.crt"})  # fmt: skip
    with Probe(config, "loop", "namespaces", "", "default", "600") as probe:
        line = probe.next("the first certificate", outcome("Forbidden"))
        assert '"nobody"' in line["message"]
        place("tls.crt", admin[0])  # for a moment the key is that of the other certificate
        place("tls.key", admin[1])
        probe.next("the second certificate", outcome("OK"))
        place("ca.crt", Authority(tmp_path).certificate)
        assert "not trusted" in probe.next("another CA", outcome("Unavailable"))["message"]
        place("ca.crt", plane.ca)
        probe.next("the CA being back", outcome("OK"))
        assert [line["outcome"] for line in probe.seen] == ["Forbidden", "OK", "Unavailable", "OK"]


def test_exec_plugin_gets_its_arguments_as_they_are(plane, tmp_path):
    plugin = tmp_path / "plugin"
    plugin.write_text(
        "#!/bin/sh\n"
        'printf "%s\\n" "$@" >>"$OUT"\n'
        'printf "%s\\n" "$KUBERNETES_EXEC_INFO" >>"$OUT.info"\n'
        'echo \'{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",'
        '"status":{"token":"token-one"}}\'\n'
    )
    plugin.chmod(0o755)
    out = tmp_path / "out"
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin",
                     "args": ["a b", "$(touch hacked); `id`", ""], "provideClusterInfo": True,
                     "interactiveMode": "IfAvailable",
                     "env": [{"name": "OUT", "value": str(out)}]}}  # fmt: skip
    config = plane.kubeconfig(tmp_path / "c", user)
    with Probe(config, "loop", "namespaces", "", "default", "2") as probe:
        probe.next("the plugin's token", outcome("OK"))
        assert probe.rest()[-1]["calls"] > 2
    assert out.read_text() == "a b\n$(touch hacked); `id`\n\n", "run once for all requests"
    info = json.loads((tmp_path / "out.info").read_text())
    assert info["spec"]["cluster"]["server"] == plane.url and info["spec"]["interactive"] is False
    plugin.write_text("#!/bin/sh\nexit 3\n")
    failed = ask(config, *GET)
    assert failed["error"] == "Unauthorized" and "exit code 3" in failed["message"], failed


def test_kubeconfig_list_and_context(plane, tmp_path):
    first = tmp_path / "first"
    first.write_text(json.dumps({"contexts": [{"name": "two", "context": {"cluster": "c", "user": "nobody"}}]}))
    second = plane.kubeconfig(tmp_path / "second")
    environment = dict(os.environ, KUBECONFIG=f"{first}:{tmp_path}/missing:{second}")

    def run(*arguments):
        done = subprocess.run([probe_path(), *arguments, *GET], capture_output=True, text=True,
                              env=environment, timeout=60, check=False)  # fmt: skip
        return json.loads(done.stdout.splitlines()[-1])

    assert succeeded(run())
    missing = run("--context=two")
    assert missing["error"] == "InvalidArgument" and '"nobody"' in missing["message"], missing
