"""What the end-to-end tests do with jobs, through the Python client of Kubernetes."""

import time

from kubernetes import client

GROUP, VERSION, PLURAL = "kubeflow.org", "v1", "pytorchjobs"


class Jobs:
    def __init__(self, api, namespace):
        self.namespace = namespace
        self.custom = client.CustomObjectsApi(api)
        self.core = client.CoreV1Api(api)

    def create(self, body):
        return self.custom.create_namespaced_custom_object(GROUP, VERSION, self.namespace, PLURAL, body)

    def get(self, name):
        return self.custom.get_namespaced_custom_object(GROUP, VERSION, self.namespace, PLURAL, name)

    def delete(self, name):
        return self.custom.delete_namespaced_custom_object(GROUP, VERSION, self.namespace, PLURAL, name)

    def conditions(self, name):
        return self.get(name).get("status", {}).get("conditions", [])

    def pods(self, selector):
        return self.core.list_namespaced_pod(self.namespace, label_selector=selector).items

    def log(self, pod):
        return self.core.read_namespaced_pod_log(pod, self.namespace)

    def events(self, name):
        return [e for e in self.core.list_namespaced_event(self.namespace).items
                if e.involved_object.kind == "PyTorchJob" and e.involved_object.name == name]

    def wait_for_end(self, name, seconds=600):
        """Waits until the job has succeeded or failed; returns it."""
        until = time.monotonic() + seconds
        while True:
            job = self.get(name)
            conditions = job.get("status", {}).get("conditions", [])
            if conditions and conditions[-1]["type"] in ("Succeeded", "Failed"):
                return job
            if time.monotonic() > until:
                raise AssertionError(f"{name} did not end within {seconds} s: {self.describe(name)}")
            time.sleep(1)

    def wait_until(self, what, check, seconds=60):
        until = time.monotonic() + seconds
        while not (value := check()):
            if time.monotonic() > until:
                raise AssertionError(f"{what}: not so within {seconds} s")
            time.sleep(0.5)
        return value

    def describe(self, name):
        lines = [str(self.get(name).get("status"))]
        for pod in self.pods(f"training.kubeflow.org/job-name={name}"):
            lines.append(f"{pod.metadata.name}: {pod.status.phase} {pod.status.container_statuses}")
        lines += [f"{e.type} {e.reason}: {e.message}" for e in self.events(name)]
        return "\n".join(lines)
