"""What the tests of the operator do with a cluster: namespaces, jobs, pods, the operator itself."""

import contextlib
import functools
import http.client
import itertools
import json
import os
import pathlib
import signal
import socket
import subprocess
import time
import uuid

import kubernetes
import urllib3
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
PATIENCE = 60  # seconds that anything may take on a busy machine; nothing is asserted about time
GROUP = ("kubeflow.org", "v1")
PODS = "training.kubeflow.org/job-name"


def wait_for(what, check, patience=PATIENCE):
    """Calls `check` until it returns something true, and returns that. A failed assertion or a
    field that is not there counts as "not yet" and is shown when time is up."""
    end = time.monotonic() + patience
    last = None
    while True:
        try:
            last = check()
            if last:
                return last
        except (AssertionError, LookupError, TypeError, kubernetes.client.ApiException) as error:
            last = error
        if time.monotonic() > end:
            raise AssertionError(f"waited in vain for {what}; last: {last!r}")
        time.sleep(0.05)


class Cluster:
    """A control plane."""

    def __init__(self, kubeconfig, audit):
        self.kubeconfig = str(kubeconfig)
        self.audit = pathlib.Path(audit)
        self.api = kubernetes.config.new_client_from_config(self.kubeconfig)
        self.core = kubernetes.client.CoreV1Api(self.api)
        self.objects = kubernetes.client.CustomObjectsApi(self.api)
        self.definitions = kubernetes.client.ApiextensionsV1Api(self.api)
        self._numbers = itertools.count(1)

    @functools.cached_property
    def kubectl_path(self):
        cache = os.environ.get("PTO_CACHE") or pathlib.Path.home() / ".cache/pytorch-operator"
        return str(pathlib.Path(cache) / "bin" / "kubectl")

    def kubectl(self, *arguments, text=None):
        done = subprocess.run(
            [self.kubectl_path, "--kubeconfig", self.kubeconfig, *arguments],
            input=text, text=True, capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def apply_crd(self, path):
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(path))
        wait_for("the CRD being established", self._established)
        wait_for("PyTorchJobs being served",
                 lambda: self.objects.list_cluster_custom_object(*GROUP, "pytorchjobs"))  # fmt: skip

    def _established(self):
        crd = self.definitions.read_custom_resource_definition("pytorchjobs.kubeflow.org")
        conditions = crd.status.conditions or []
        return any((c.type, c.status) == ("Established", "True") for c in conditions)

    def new_namespace(self, **labels):
        name = f"t{next(self._numbers)}-{uuid.uuid4().hex[:6]}"
        self.core.create_namespace({"metadata": {"name": name, "labels": labels}})
        # Until then the API server refuses pods of this namespace.
        wait_for("the default service account",
                 lambda: self.core.read_namespaced_service_account("default", name))  # fmt: skip
        return name

    def writes(self, namespace, agent):
        """The writes of one client to one namespace, by the audit log: (verb, resource, name, code)."""
        found = []
        for line in self.audit.read_text().splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # being written
            about = entry.get("objectRef", {})
            if about.get("namespace") != namespace or agent not in entry.get("userAgent", ""):
                continue
            code = entry.get("responseStatus", {}).get("code")
            resource = about["resource"]
            if about.get("subresource"):
                resource += "/" + about["subresource"]
            found.append((entry["verb"], resource, about.get("name", ""), code))
        return found


class Operator:
    """One process of the operator."""

    def __init__(self, program, kubeconfig, log, *flags):
        self.port = _free_port()
        self.log = pathlib.Path(log)
        with open(self.log, "ab") as out:
            self.process = subprocess.Popen(
                [str(program), "--kubeconfig", str(kubeconfig), "--log-level=debug",
                 f"--metrics-bind-address=127.0.0.1:{self.port}",
                 f"--health-probe-bind-address=127.0.0.1:{self.port}", *flags],
                stderr=out, stdout=out,
            )  # fmt: skip

    def get(self, path):
        """Status and body of one of its pages."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        with contextlib.closing(connection):
            connection.request("GET", path)
            reply = connection.getresponse()
            return reply.status, reply.read().decode()

    def ready(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"the operator ended: {self.log.read_text()}")
        try:
            return self.get("/readyz")[0] == 200
        except OSError:
            return False

    def wait_ready(self):
        wait_for("the operator being ready", self.ready)
        return self

    def metric(self, name, **labels):
        """The sum of a metric over all its series that have these labels."""
        total = 0.0
        for line in self.get("/metrics")[1].splitlines():
            series, _, value = line.rpartition(" ")
            if series.partition("{")[0] != name:
                continue
            if all(f'{key}="{label}"' in series for key, label in labels.items()):
                total += float(value)
        return total

    def writes(self):
        """How many requests it has made that change something."""
        return sum(
            self.metric("rest_client_requests_total", method=verb)
            for verb in ("POST", "PUT", "PATCH", "DELETE")
        )

    def stop(self, how=signal.SIGTERM):
        """Ends it; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(timeout=PATIENCE)


class Stage:
    """One namespace, its jobs and its operators."""

    def __init__(self, cluster, program, folder):
        self.cluster = cluster
        self.core = cluster.core
        self.program = program
        self.folder = folder
        self.namespace = cluster.new_namespace()
        self.operator = None
        self._operators = []

    def start(self, *flags, wait=True):
        """Starts an operator for this namespace."""
        log = self.folder / f"operator-{len(self._operators)}.log"
        self.operator = Operator(
            self.program, self.cluster.kubeconfig, log, f"--namespace={self.namespace}", *flags
        )
        self._operators.append(self.operator)
        if wait:
            self.operator.wait_ready()
        return self.operator

    def restart(self, *flags, how=signal.SIGTERM):
        self.operator.stop(how)
        return self.start(*flags)

    def close(self):
        for operator in self._operators:
            operator.stop()
        self.core.delete_namespace(self.namespace)

    def report(self):
        """What one wants to see of a failed test."""
        for operator in self._operators:
            print(f"--- {operator.log.name}\n{operator.log.read_text()[-8000:]}")

    # Jobs

    def create(self, job):
        return self.cluster.objects.create_namespaced_custom_object(
            *GROUP, self.namespace, "pytorchjobs", job
        )

    def job(self, name):
        return self.cluster.objects.get_namespaced_custom_object(
            *GROUP, self.namespace, "pytorchjobs", name
        )

    def patch(self, name, patch):
        return self.cluster.objects.patch_namespaced_custom_object(
            *GROUP, self.namespace, "pytorchjobs", name, patch
        )

    def delete(self, name, propagation=None):
        """Returns when the name is free: with Orphan the job outlives its children's release."""
        self.cluster.objects.delete_namespaced_custom_object(
            *GROUP, self.namespace, "pytorchjobs", name, propagation_policy=propagation
        )
        wait_for(f"the end of job {name}", lambda: self._gone(name))

    def _gone(self, name):
        try:
            self.job(name)
        except kubernetes.client.ApiException as e:
            return e.status == 404
        return False

    def condition(self, name, kind):
        """The condition of this type, or None."""
        for condition in self.job(name).get("status", {}).get("conditions", []):
            if condition["type"] == kind:
                return condition
        return None

    def wait_state(self, name, state):
        """Waits until this is what is true of the job now; the job."""

        def check():
            job = self.job(name)
            last = job["status"]["conditions"][-1]
            return job if (last["type"], last["status"]) == (state, "True") else None

        return wait_for(f"{name} being {state}", check)

    # Children

    def pods(self, job=None):
        """Pods by name; of one job, or all of the namespace."""
        selector = f"{PODS}={job}" if job else ""
        found = self.core.list_namespaced_pod(self.namespace, label_selector=selector)
        return {pod.metadata.name: pod for pod in found.items}

    def services(self, job=None):
        selector = f"{PODS}={job}" if job else ""
        found = self.core.list_namespaced_service(self.namespace, label_selector=selector)
        return {service.metadata.name: service for service in found.items}

    def wait_pods(self, job, *names):
        """Waits until these and no others are the job's pods, none terminating; by name."""

        def check():
            pods = self.pods(job)
            live = {n for n, p in pods.items() if not p.metadata.deletion_timestamp}
            assert live == set(names) and len(pods) == len(live), f"pods: {sorted(pods)}"
            return [pods]

        return wait_for(f"the pods {', '.join(names) or '(none)'}", check)[0]

    def set_pod(self, name, phase, exit_code=None, restarts=0, reason="", container="pytorch"):
        """Plays the kubelet: a pod's phase, its container's end or its restarts."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        status = {"phase": phase, "startTime": now}
        state = {"running": {"startedAt": now}}
        last = {}
        if phase in ("Succeeded", "Failed"):
            code = exit_code if exit_code is not None else (0 if phase == "Succeeded" else 1)
            word = reason or ("Completed" if code == 0 else "Error")
            state = {"terminated": {"exitCode": code, "reason": word, "startedAt": now,
                                    "finishedAt": now}}  # fmt: skip
        elif restarts:
            last = {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": now}}
        if phase != "Pending":
            ready = phase == "Running"
            status["containerStatuses"] = [
                {"name": container, "image": "i", "imageID": "i", "ready": ready,
                 "restartCount": restarts, "state": state, "lastState": last}
            ]  # fmt: skip
            status["conditions"] = [{"type": "Ready", "status": str(ready)}]
        self.core.patch_namespaced_pod_status(name, self.namespace, {"status": status})

    def set_pods(self, job, phase, **more):
        """The same for all pods of a job that are not deleted meanwhile."""
        for name in self.pods(job):
            try:
                self.set_pod(name, phase, **more)
            except kubernetes.client.ApiException as error:
                if error.status != 404:
                    raise

    def run_all(self, name):
        """Brings a new job to Running."""
        wanted = wanted_pods(self.job(name))
        self.wait_pods(name, *wanted)
        for pod in wanted:
            self.set_pod(pod, "Running")
        return self.wait_state(name, "Running")

    def bind(self, pod, node="nowhere"):
        """Gives a pod to a node that does not exist: from now on its deletion is graceful."""
        self.core.create_namespaced_pod_binding(
            pod, self.namespace,
            kubernetes.client.V1Binding(
                metadata=kubernetes.client.V1ObjectMeta(name=pod),
                target=kubernetes.client.V1ObjectReference(kind="Node", name=node),
            ),
            _preload_content=False,
        )  # fmt: skip

    def events(self, job=None, reason=None):
        """Events about jobs, oldest first: objects of the API."""
        fields = ["involvedObject.kind=PyTorchJob"]
        if job:
            fields.append(f"involvedObject.name={job}")
        if reason:
            fields.append(f"reason={reason}")
        found = self.core.list_namespaced_event(self.namespace, field_selector=",".join(fields))
        return sorted(found.items, key=lambda e: (e.first_timestamp, e.metadata.resource_version))

    def settle(self, quiet=2.0):
        """Waits until the operator has made no write for a while."""
        last, since = self.operator.writes(), time.monotonic()
        end = since + PATIENCE
        while time.monotonic() - since < quiet:
            time.sleep(0.1)
            now = self.operator.writes()
            if now != last:
                last, since = now, time.monotonic()
            assert time.monotonic() < end, "the operator never stops writing"
        return last


def wanted_pods(job):
    """Names of all pods that a job wants."""
    names = []
    for kind, spec in job["spec"]["pytorchReplicaSpecs"].items():
        for index in range(spec.get("replicas", 1)):
            names.append(f"{job['metadata']['name']}-{kind.lower()}-{index}")
    return names


def pytorchjob(name, workers=1, master=True, policy=None, run_policy=None, container=None, **spec):
    """A manifest. `container` adds to the training container; further keywords go into spec."""

    def replica(count):
        made = {"name": "pytorch", "image": "training:latest", "command": ["python", "t.py"]}
        made.update(container or {})
        out = {"replicas": count, "template": {"spec": {"containers": [made]}}}
        if policy:
            out["restartPolicy"] = policy
        return out

    replicas = {}
    if master:
        replicas["Master"] = replica(1)
    if workers:
        replicas["Worker"] = replica(workers)
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": replicas, "runPolicy": run_policy or {}, **spec},
    }


def _free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
