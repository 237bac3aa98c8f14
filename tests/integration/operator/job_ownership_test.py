"""Ownership is by UID: foreign objects with our names or labels, orphans, removed labels, a job that
is made again while the old pods still terminate."""

from operator_rig import pytorchjob, wait_for

LABELS = {
    "training.kubeflow.org/operator-name": "pytorchjob-controller",
    "training.kubeflow.org/job-name": "mnist",
    "training.kubeflow.org/replica-type": "worker",
    "training.kubeflow.org/replica-index": "0",
}


def foreign_pod(stage, name, **metadata):
    return stage.core.create_namespaced_pod(stage.namespace, {
        "metadata": {"name": name, **metadata},
        "spec": {"containers": [{"name": "pytorch", "image": "i"}]},
    })  # fmt: skip


def held(stage, *words):
    def check():
        message = stage.condition("mnist", "ReplicaFailure")["message"]
        return all(word in message for word in words)

    wait_for(f"a condition that says {words}", check)


def test_foreign_pod_with_our_labels_is_left_alone(jobs):
    foreign = foreign_pod(jobs, "stranger", labels=LABELS)
    jobs.create(pytorchjob("mnist", workers=1))
    wait_for("our pods", lambda: {"mnist-master-0", "mnist-worker-0"} <= set(jobs.pods()))
    jobs.set_pod("mnist-master-0", "Running")
    jobs.set_pod("mnist-worker-0", "Running")
    jobs.wait_state("mnist", "Running")
    jobs.set_pod("stranger", "Failed")
    jobs.patch("mnist", {"spec": {"runPolicy": {"suspend": True}}})
    jobs.wait_state("mnist", "Suspended")
    wait_for("our pods' end", lambda: set(jobs.pods()) == {"stranger"})
    jobs.settle()
    assert jobs.pods()["stranger"].metadata.uid == foreign.metadata.uid
    assert jobs.job("mnist")["status"].get("restartCount", 0) == 0


def test_foreign_pod_under_our_name_with_our_labels(jobs):
    foreign = foreign_pod(jobs, "mnist-worker-0", labels=LABELS)
    jobs.create(pytorchjob("mnist", workers=1))
    held(jobs, f"Pod {jobs.namespace}/mnist-worker-0", "no controller")
    assert jobs.pods()["mnist-worker-0"].metadata.uid == foreign.metadata.uid
    jobs.core.delete_namespaced_pod("mnist-worker-0", jobs.namespace)
    jobs.run_all("mnist")


def test_foreign_service_under_our_name(jobs):
    jobs.core.create_namespaced_service(jobs.namespace, {
        "metadata": {"name": "mnist-master-0"}, "spec": {"ports": [{"port": 80}]},
    })  # fmt: skip
    jobs.create(pytorchjob("mnist", workers=1))
    held(jobs, f"Service {jobs.namespace}/mnist-master-0")
    assert jobs.condition("mnist", "ReplicaFailure")["reason"] == "FailedCreateService"
    service = jobs.services()["mnist-master-0"]
    assert not service.metadata.owner_references and service.spec.ports[0].port == 80
    jobs.core.delete_namespaced_service("mnist-master-0", jobs.namespace)
    jobs.run_all("mnist")


def test_removed_labels_are_put_back(jobs):
    jobs.create(pytorchjob("mnist", workers=1))
    jobs.run_all("mnist")
    before = jobs.pods("mnist")["mnist-worker-0"]
    nothing = dict.fromkeys(before.metadata.labels)
    jobs.core.patch_namespaced_pod(
        "mnist-worker-0", jobs.namespace, {"metadata": {"labels": nothing}}
    )
    wait_for("the labels",
             lambda: jobs.pods("mnist")["mnist-worker-0"].metadata.labels == before.metadata.labels)
    assert jobs.pods("mnist")["mnist-worker-0"].metadata.uid == before.metadata.uid
    jobs.settle()
    job = jobs.job("mnist")
    assert job["status"]["conditions"][-1]["type"] == "Running"
    assert job["status"].get("restartCount", 0) == 0
    assert len(jobs.events("mnist", reason="SuccessfulCreatePod")) == 2


def test_labels_removed_while_no_operator_ran(stage):
    stage.start()
    stage.create(pytorchjob("mnist", workers=1))
    stage.run_all("mnist")
    before = stage.pods("mnist")["mnist-worker-0"]
    stage.operator.stop()
    nothing = dict.fromkeys(before.metadata.labels)
    stage.core.patch_namespaced_pod(
        "mnist-worker-0", stage.namespace, {"metadata": {"labels": nothing}}
    )
    stage.start()
    wait_for("the labels",
             lambda: stage.pods("mnist")["mnist-worker-0"].metadata.labels == before.metadata.labels)
    assert stage.pods("mnist")["mnist-worker-0"].metadata.uid == before.metadata.uid


def test_orphans_of_a_deleted_job_hold_their_names(jobs):
    jobs.create(pytorchjob("mnist", workers=1))
    jobs.run_all("mnist")
    old = {n: p.metadata.uid for n, p in jobs.pods("mnist").items()}
    jobs.delete("mnist", propagation="Orphan")
    wait_for("orphans", lambda: not any(
        p.metadata.owner_references for p in jobs.pods("mnist").values()))
    jobs.create(pytorchjob("mnist", workers=1))
    held(jobs, "no controller")
    assert {n: p.metadata.uid for n, p in jobs.pods("mnist").items()} == old
    jobs.core.delete_namespaced_service("mnist-master-0", jobs.namespace)
    for name in old:
        jobs.core.delete_namespaced_pod(name, jobs.namespace)
    jobs.run_all("mnist")


def test_made_again_while_the_old_pods_terminate(jobs):
    jobs.create(pytorchjob("mnist", workers=1))
    jobs.wait_pods("mnist", "mnist-master-0", "mnist-worker-0")
    for pod in ("mnist-master-0", "mnist-worker-0"):
        jobs.bind(pod)  # from now on their deletion takes its time
        jobs.set_pod(pod, "Running")
    jobs.wait_state("mnist", "Running")
    old = {n: p.metadata.uid for n, p in jobs.pods("mnist").items()}
    jobs.delete("mnist")
    wait_for("the old pods terminating", lambda: all(
        p.metadata.deletion_timestamp for p in jobs.pods("mnist").values()))
    jobs.create(pytorchjob("mnist", workers=1))
    held(jobs, "terminating")
    assert {n: p.metadata.uid for n, p in jobs.pods("mnist").items()} == old
    for pod in old:
        jobs.core.delete_namespaced_pod(pod, jobs.namespace, grace_period_seconds=0)
    jobs.run_all("mnist")
    assert not set(old.values()) & {p.metadata.uid for p in jobs.pods("mnist").values()}


def test_a_pod_deleted_by_hand_is_replaced_and_not_counted(jobs):
    jobs.create(pytorchjob("mnist", workers=1, policy="Never"))
    jobs.run_all("mnist")
    uid = jobs.pods("mnist")["mnist-worker-0"].metadata.uid
    jobs.core.delete_namespaced_pod("mnist-worker-0", jobs.namespace)
    wait_for("a successor", lambda: jobs.pods("mnist")["mnist-worker-0"].metadata.uid != uid)
    jobs.set_pod("mnist-worker-0", "Running")
    jobs.wait_state("mnist", "Running")
    assert jobs.job("mnist")["status"].get("restartCount", 0) == 0


def test_another_managers_job_is_left_alone(jobs):
    jobs.create(pytorchjob("other", run_policy={"managedBy": "kueue.x-k8s.io/multikueue"}))
    jobs.create(pytorchjob("mnist"))
    jobs.run_all("mnist")
    jobs.settle()
    assert "status" not in jobs.job("other")
    assert not jobs.pods("other") and not jobs.events("other")
