"""What the tests of operator/kube do with a control plane: certificates, kubeconfigs, the probe."""

import base64
import json
import os
import pathlib
import queue
import signal
import subprocess
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]
PATIENCE = 60  # seconds that anything may take on a busy machine; nothing is asserted about time


def probe_path():
    path = os.environ.get("PROBE_BIN") or ROOT / "build" / "release" / "bin" / "kube_probe"
    assert pathlib.Path(path).exists(), f"{path} is missing: make build, or set PROBE_BIN"
    return str(path)


def openssl(*arguments):
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class Authority:
    """A certificate authority in a folder."""

    def __init__(self, folder, certificate=None, key=None):
        self.folder = pathlib.Path(folder)
        self.certificate = pathlib.Path(certificate or self.folder / "own-ca.crt")
        self.key = pathlib.Path(key or self.folder / "own-ca.key")
        if certificate is None:
            openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", self.key, "-out",
                    self.certificate, "-days", "2", "-subj", "/CN=another authority")  # fmt: skip

    def issue(self, name, subject, extensions):
        """Paths of a certificate and its key."""
        key, request, certificate, config = (
            self.folder / f"{name}.{end}" for end in ("key", "csr", "crt", "ext")
        )
        config.write_text(extensions)
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", request, "-subj",
                subject)  # fmt: skip
        openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key,
                "-CAcreateserial", "-days", "2", "-out", certificate, "-extfile", config)  # fmt: skip
        return certificate, key


class Plane:
    """etcd and API server of cluster.sh, without controller manager; users "reader" with tokens."""

    TOKENS = ("token-one", "token-two")

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.script = ROOT / "tests" / "cluster" / "cluster.sh"
        tokens = self.folder.parent / "tokens.csv"
        tokens.write_text("".join(f"{t},{t}-user,{i},system:masters\n"
                                  for i, t in enumerate(self.TOKENS)))  # fmt: skip
        self.environment = dict(os.environ, CONTROLLER_MANAGER="0",
                                APISERVER_ARGS=f"--token-auth-file={tokens}")  # fmt: skip
        self.up()
        ports = dict(line.split("=") for line in (self.folder / "ports").read_text().split())
        self.port, self.etcd_port = int(ports["API_PORT"]), int(ports["ETCD_PORT"])
        self.url = f"https://127.0.0.1:{self.port}"
        self.admin = self.folder / "admin.kubeconfig"
        self.ca = self.folder / "pki" / "ca.crt"

    def up(self):
        subprocess.run([self.script, "up", self.folder], env=self.environment, check=True)

    def down(self):
        subprocess.run([self.script, "down", self.folder], env=self.environment, check=True)

    def server_pid(self):
        return int((self.folder / "run" / "apiserver.pid").read_text())

    def kill_server(self):
        pid = self.server_pid()
        os.kill(pid, signal.SIGKILL)
        wait_for("the API server being gone", lambda: not pathlib.Path(f"/proc/{pid}/fd").exists()
                 or not os.listdir(f"/proc/{pid}/fd"))  # fmt: skip

    def authority(self, folder):
        return Authority(folder, self.ca, self.folder / "pki" / "ca.key")

    def compact(self):
        """Makes etcd forget all older versions."""

        def call(path, body):
            request = urllib.request.Request(f"http://127.0.0.1:{self.etcd_port}{path}",
                                             json.dumps(body).encode())  # fmt: skip
            with urllib.request.urlopen(request, timeout=10) as reply:
                return json.load(reply)

        status = call("/v3/maintenance/status", {})
        revision = status["header"]["revision"]
        call("/v3/kv/compaction", {"revision": revision, "physical": True})
        return int(revision)

    def kubeconfig(self, path, user=None, **cluster):
        """Writes a kubeconfig; without `user` with the administrator's certificate."""
        pki = self.folder / "pki"
        user = user or {"client-certificate": str(pki / "admin.crt"),
                        "client-key": str(pki / "admin.key")}  # fmt: skip
        cluster = {"server": self.url, "certificate-authority": str(self.ca), **cluster}
        cluster = {key: value for key, value in cluster.items() if value is not None}
        pathlib.Path(path).write_text(json.dumps({
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }))  # fmt: skip
        return path


def wait_for(what, check, patience=PATIENCE):
    end = time.monotonic() + patience
    while True:
        found = check()
        if found:
            return found
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.05)


def ask(kubeconfig, *arguments, environment=None):
    """Runs the probe to its end; its last line."""
    done = subprocess.run(
        [probe_path(), f"--kubeconfig={kubeconfig}", *arguments], capture_output=True, text=True,
        timeout=PATIENCE, env=dict(os.environ, **(environment or {})), check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), f"exit {done.returncode}: {done.stderr}"
    return json.loads(done.stdout.splitlines()[-1])


class Probe:
    """A probe that runs on, with its lines."""

    def __init__(self, kubeconfig, *arguments):
        self.process = subprocess.Popen(
            [probe_path(), f"--kubeconfig={kubeconfig}", *arguments], stdout=subprocess.PIPE, text=True
        )
        self.seen = []
        self._lines = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)

    def next(self, what, check, patience=PATIENCE):
        """The next line that `check` is true for; those before it are passed over."""
        end = time.monotonic() + patience
        while True:
            try:
                line = self._lines.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                line = None
            assert line is not None, f"waited in vain for {what}; lines: {self.seen[-10:]}"
            self.seen.append(line)
            if check(line):
                return line

    def rest(self):
        """All lines up to the end of the process."""
        while (line := self._lines.get(timeout=PATIENCE)) is not None:
            self.seen.append(line)
        return self.seen

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(PATIENCE) == 0
        return self.rest()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def data(path):
    return base64.b64encode(pathlib.Path(path).read_bytes()).decode()
