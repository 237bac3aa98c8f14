"""The status: the transition table, held at every version that a watch sees; what a replica waits
for; creation errors within one pass."""

import threading

import kubernetes
import pytest

from operator_rig import GROUP, pytorchjob, wait_for

EXCLUSIVE = ("Running", "Restarting", "Suspended", "Succeeded", "Failed")


class History:
    """Every version of a namespace's jobs, as a watch saw them, held against the rules."""

    def __init__(self, stage):
        self.versions = []
        self.broken = []
        self._stop = kubernetes.watch.Watch()
        self._list = stage.cluster.objects.list_namespaced_custom_object
        self._namespace = stage.namespace
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self):
        for event in self._stop.stream(
            self._list, *GROUP, self._namespace, "pytorchjobs", timeout_seconds=300
        ):
            status = event["object"].get("status")
            if status:
                self.versions.append(status)
                self._check(status)

    def _check(self, status):
        conditions = status.get("conditions", [])
        true = [c["type"] for c in conditions if c["status"] == "True" and c["type"] in EXCLUSIVE]
        states = [(c["type"], c["status"]) for c in conditions]
        if len(true) > 1:
            self.broken.append(f"two are true: {states}")
        if conditions[-1]["status"] != "True":
            self.broken.append(f"the last is not true: {states}")
        elif true and conditions[-1]["type"] != true[0]:
            self.broken.append(f"the true one is not last: {states}")
        if ("Succeeded", "False") in states or ("Failed", "False") in states:
            self.broken.append(f"an end was taken back: {states}")
        if len({c["type"] for c in conditions}) != len(conditions):
            self.broken.append(f"a type twice: {states}")
        if set(status.get("replicaStatuses", {})) != {"Master", "Worker"}:
            self.broken.append(f"replicaStatuses: {status.get('replicaStatuses')}")

    def states(self):
        """The states that the job went through, as STATE shows them, without repetitions."""
        found = []
        for status in self.versions:
            state = status["conditions"][-1]["type"]
            if not found or found[-1] != state:
                found.append(state)
        return found

    def close(self):
        self._stop.stop()


@pytest.fixture
def history(jobs):
    history = History(jobs)
    yield history
    history.close()
    assert history.versions, "the watch saw nothing"
    assert not history.broken, history.broken


def test_the_transition_table_at_every_version(jobs, history):
    jobs.create(pytorchjob("mnist", workers=1))
    jobs.run_all("mnist")
    uid = jobs.pods("mnist")["mnist-master-0"].metadata.uid
    jobs.set_pod("mnist-master-0", "Failed", exit_code=2)
    wait_for("a successor", lambda: jobs.pods("mnist")["mnist-master-0"].metadata.uid != uid)
    jobs.set_pod("mnist-master-0", "Running")
    jobs.wait_state("mnist", "Running")
    jobs.patch("mnist", {"spec": {"runPolicy": {"suspend": True}}})
    jobs.wait_state("mnist", "Suspended")
    jobs.patch("mnist", {"spec": {"runPolicy": {"suspend": False}}})
    jobs.run_all("mnist")
    jobs.set_pods("mnist", "Succeeded")
    jobs.wait_state("mnist", "Succeeded")
    wait_for("the watch's last version", lambda: history.states()[-1] == "Succeeded")
    assert history.states() == [
        "Created", "Running", "Restarting", "Running", "Suspended", "Created", "Running",
        "Succeeded",
    ]  # fmt: skip


def test_a_failing_job_at_every_version(jobs, history):
    jobs.create(pytorchjob("mnist", workers=2, policy="Never"))
    jobs.run_all("mnist")
    jobs.set_pod("mnist-worker-1", "Failed", exit_code=137, reason="OOMKilled")
    job = jobs.wait_state("mnist", "Failed")
    failure = job["status"]["lastFailure"]
    assert (failure["replicaType"], failure["index"]) == ("Worker", 1)
    assert (failure["exitCode"], failure["reason"]) == (137, "OOMKilled")
    jobs.wait_pods("mnist", "mnist-worker-1")
    wait_for("the watch's last version", lambda: history.states()[-1] == "Failed")
    assert history.states() == ["Created", "Running", "Failed"]


def test_observed_generation_follows(jobs):
    jobs.create(pytorchjob("mnist", workers=1))
    jobs.run_all("mnist")
    jobs.patch("mnist", {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 2}}}})

    def seen():
        job = jobs.job("mnist")
        return job["status"]["observedGeneration"] == job["metadata"]["generation"] == 2

    wait_for("the generation", seen)


def test_completed_indexes_and_summary(jobs):
    jobs.create(pytorchjob("mnist", master=False, workers=4))
    jobs.run_all("mnist")
    for index in (0, 1, 3):
        jobs.set_pod(f"mnist-worker-{index}", "Succeeded")

    def counted():
        worker = jobs.job("mnist")["status"]["replicaStatuses"]["Worker"]
        return worker["completedIndexes"] == "0,1,3" and worker["active"] == 1

    wait_for("the indexes", counted)
    jobs.set_pod("mnist-worker-2", "Succeeded")
    job = jobs.wait_state("mnist", "Succeeded")
    assert job["status"]["summary"] == "4/4"


def test_what_a_replica_waits_for(jobs):
    jobs.create(pytorchjob("mnist", workers=1))
    jobs.wait_pods("mnist", "mnist-master-0", "mnist-worker-0")
    waiting = {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}
    status = {
        "phase": "Pending",
        "containerStatuses": [
            {"name": "pytorch", "image": "i", "imageID": "", "ready": False, "restartCount": 0,
             "state": {"waiting": waiting}}
        ],
    }  # fmt: skip
    jobs.core.patch_namespaced_pod_status("mnist-worker-0", jobs.namespace, {"status": status})
    wait_for("the reason", lambda: jobs.job("mnist")["status"]["waiting"] == {
        "pod": "mnist-worker-0", **waiting})
    wait_for("its event", lambda: jobs.events("mnist", reason="ImagePullBackOff"))
    jobs.set_pods("mnist", "Running")
    wait_for("its end", lambda: "waiting" not in jobs.job("mnist")["status"])


# Whatever keeps children from being created, in the API server's own words.


def refused(jobs, *words):
    def check():
        condition = jobs.condition("mnist", "ReplicaFailure")
        assert condition and condition["status"] == "True", condition
        for word in words:
            assert word in condition["message"], condition
        conditions = [c["type"] for c in jobs.job("mnist")["status"]["conditions"]]
        assert conditions.index("ReplicaFailure") == conditions.index("Created") + 1
        return condition

    return wait_for("the refusal in the status", check)


def test_quota_refuses_and_then_grants(jobs):
    quota = kubernetes.client.V1ResourceQuota(
        metadata={"name": "small"}, spec={"hard": {"pods": "1"}}
    )
    jobs.core.create_namespaced_resource_quota(jobs.namespace, quota)
    wait_for("the quota's status", lambda: jobs.core.read_namespaced_resource_quota(
        "small", jobs.namespace).status.hard)
    jobs.create(pytorchjob("mnist", workers=3))
    assert refused(jobs, "exceeded quota: small")["reason"] == "FailedCreatePod"
    assert list(jobs.pods("mnist")) == ["mnist-master-0"]
    jobs.core.patch_namespaced_resource_quota(
        "small", jobs.namespace, {"spec": {"hard": {"pods": "10"}}}
    )
    jobs.run_all("mnist")
    wait_for("the condition's end",
             lambda: jobs.condition("mnist", "ReplicaFailure")["status"] == "False")


def test_forbidden_by_admission(jobs):
    jobs.core.patch_namespace(
        jobs.namespace,
        {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}},
    )
    jobs.create(pytorchjob("mnist", workers=1))
    assert refused(jobs, "violates PodSecurity")["reason"] == "FailedCreatePod"
    jobs.settle()
    failures = jobs.events("mnist", reason="FailedCreatePod")
    assert len(failures) == 1 and "violates PodSecurity" in failures[0].message


def test_missing_service_account(jobs):
    job = pytorchjob("mnist", workers=0)
    job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["serviceAccountName"] = "ghost"
    jobs.create(job)
    refused(jobs, "serviceaccount", "ghost")
    jobs.core.create_namespaced_service_account(jobs.namespace, {"metadata": {"name": "ghost"}})
    jobs.run_all("mnist")


def test_taken_name(jobs):
    jobs.core.create_namespaced_pod(jobs.namespace, {
        "metadata": {"name": "mnist-worker-0"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    })  # fmt: skip
    jobs.create(pytorchjob("mnist", workers=1))
    refused(jobs, f"Pod {jobs.namespace}/mnist-worker-0", "no controller")
    foreign = jobs.core.read_namespaced_pod("mnist-worker-0", jobs.namespace)
    assert not foreign.metadata.labels and not foreign.metadata.owner_references
    jobs.core.delete_namespaced_pod("mnist-worker-0", jobs.namespace)
    jobs.run_all("mnist")


def test_invalid_spec_that_the_crd_cannot_see(jobs):
    """The API server refuses the pods: a volume that is not there."""
    mounts = [{"name": "ghost", "mountPath": "/data"}]
    jobs.create(pytorchjob("mnist", workers=0, container={"volumeMounts": mounts}))
    refused(jobs, "volumeMounts", "ghost")
