"""The operator's process."""

import asyncio
import os
import pathlib
import signal

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(
    os.environ.get("OPERATOR_BIN", ROOT / "build" / "release" / "bin" / "pytorch-operator")
)
PATIENCE = 60  # seconds; on a busy machine everything is late


class Ended(RuntimeError):
    """The operator ended although nobody asked it to."""


class Operator:
    """Runs until stopped; started again each time it was killed. An end that nobody asked for is
    given to `on_end` as an exception."""

    def __init__(self, kubeconfig, namespace, log, on_end, flags=()):
        self._command = [
            BINARY, "--kubeconfig", kubeconfig, "--namespace", namespace,
            "--metrics-bind-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0",
            "--log-level", "debug", *flags,
        ]  # fmt: skip
        self.log = pathlib.Path(log)
        self._on_end = on_end
        self._process = None
        self._killed = False
        self._stopping = False
        self._task = None
        self._spawning = asyncio.Lock()
        self.restarts = 0

    async def start(self):
        await self._spawn()
        self._task = asyncio.create_task(self._keep())

    async def _spawn(self):
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *map(str, self._command), stdout=log, stderr=log, stdin=asyncio.subprocess.DEVNULL,
                env={**os.environ, "KUBEFLOW_NAMESPACE": ""},
            )  # fmt: skip

    async def _keep(self):
        while True:
            status = await self._process.wait()
            if self._stopping:
                return
            if not self._killed:
                self._on_end(Ended(f"the operator ended by itself with status {status}"))
                return
            async with self._spawning:
                if self._stopping:
                    return
                self._killed = False
                self.restarts += 1
                await self._spawn()

    def kill(self, again=True):
        """kill -9; it is started `again` unless that is not wanted."""
        if self._process.returncode is None and not self._killed:
            self._killed = True
            self._stopping = not again
            self._process.kill()

    def pause(self):
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self):
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGCONT)

    async def _awake(self):
        """Until the process has begun to log: before that it does not take signals."""
        while self._process.returncode is None and not self._killed:
            if self.log.read_bytes().count(b" pytorch-operator ") > self.restarts:
                return
            await asyncio.sleep(0.05)

    async def stop(self):
        """SIGTERM; its exit status. 0 also when it was killed just now."""
        async with self._spawning:
            await self._awake()
            self._stopping = True
            if self._process.returncode is None:
                self._process.terminate()
        try:
            async with asyncio.timeout(PATIENCE):
                status = await self._process.wait()
                return 0 if self._killed else status
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
            return f"no end within {PATIENCE} s of SIGTERM"
        finally:
            self._task.cancel()
