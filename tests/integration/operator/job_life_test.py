"""A job's whole life: create, run, succeed; fail with each restart policy; delete; restarts of the
operator in the middle. What is created is counted by the API server's own audit log."""

import signal

import pytest

from operator_rig import pytorchjob, wait_for

PODS = ["mnist-master-0", "mnist-worker-0", "mnist-worker-1"]


def creations(jobs):
    """Names of the pods and Services that were created, with repetitions."""
    return sorted(
        (resource, name)
        for verb, resource, name, code in jobs.cluster.writes(jobs.namespace, "")
        if verb == "create" and code == 201 and resource in ("pods", "services")
    )


def test_create_run_succeed(jobs):
    jobs.create(pytorchjob("mnist", workers=2))
    jobs.wait_pods("mnist", *PODS)
    job = jobs.wait_state("mnist", "Created")
    assert list(jobs.services("mnist")) == ["mnist-master-0"]
    assert set(job["status"]["replicaStatuses"]) == {"Master", "Worker"}

    for pod in PODS:
        jobs.set_pod(pod, "Running")
    jobs.wait_state("mnist", "Running")
    wait_for("all counted", lambda: jobs.job("mnist")["status"]["summary"] == "3/3")

    jobs.set_pod("mnist-master-0", "Succeeded")
    job = jobs.wait_state("mnist", "Succeeded")
    assert job["status"]["completionTime"]
    assert job["status"]["replicaStatuses"]["Master"]["succeeded"] == 1
    assert jobs.condition("mnist", "Running")["status"] == "False"
    # Peers are left to end by themselves; the Service stays for them.
    assert set(jobs.pods("mnist")) == set(PODS)
    jobs.set_pod("mnist-worker-0", "Succeeded")
    jobs.set_pod("mnist-worker-1", "Succeeded")
    wait_for("the Service's end", lambda: not jobs.services("mnist"))
    assert set(jobs.pods("mnist")) == set(PODS)
    assert jobs.operator.metric("training_operator_jobs_created_total") == 1
    assert jobs.operator.metric("training_operator_jobs_successful_total") == 1
    assert jobs.operator.metric("training_operator_jobs_failed_total") == 0


def test_worker_only_job_succeeds_when_every_worker_has(jobs):
    jobs.create(pytorchjob("mnist", master=False, workers=2))
    jobs.run_all("mnist")
    assert list(jobs.services("mnist")) == ["mnist-worker-0"]
    jobs.set_pod("mnist-worker-0", "Succeeded")
    wait_for("one counted",
             lambda: jobs.job("mnist")["status"]["replicaStatuses"]["Worker"].get("succeeded"))
    assert jobs.condition("mnist", "Succeeded") is None
    jobs.set_pod("mnist-worker-1", "Succeeded")
    jobs.wait_state("mnist", "Succeeded")


def test_never_fails_with_the_first_failed_pod(jobs):
    jobs.create(pytorchjob("mnist", workers=2, policy="Never"))
    jobs.run_all("mnist")
    jobs.set_pod("mnist-worker-1", "Failed", exit_code=3)
    job = jobs.wait_state("mnist", "Failed")
    failure = job["status"]["lastFailure"]
    assert (failure["pod"], failure["exitCode"]) == ("mnist-worker-1", 3)
    assert "mnist-worker-1" in jobs.condition("mnist", "Failed")["message"]
    # What still runs can't go on; what has ended stays for its logs.
    jobs.wait_pods("mnist", "mnist-worker-1")
    wait_for("the Service's end", lambda: not jobs.services("mnist"))
    assert jobs.operator.metric("training_operator_jobs_failed_total") == 1
    reasons = [e.reason for e in jobs.events("mnist") if e.type == "Warning"]
    assert reasons.count("PyTorchJobFailed") == 1


@pytest.mark.parametrize("policy", ["OnFailure", "Always"])
def test_a_failed_pod_is_replaced(jobs, policy):
    jobs.create(pytorchjob("mnist", workers=1, policy=policy))
    jobs.run_all("mnist")
    before = jobs.pods("mnist")["mnist-worker-0"].metadata.uid
    jobs.set_pod("mnist-worker-0", "Failed", exit_code=2)
    wait_for("a successor",
             lambda: jobs.pods("mnist")["mnist-worker-0"].metadata.uid != before)
    jobs.set_pod("mnist-worker-0", "Running")
    job = jobs.wait_state("mnist", "Running")
    assert job["status"]["restartCount"] == 1
    assert jobs.condition("mnist", "Restarting")["status"] == "False"
    assert jobs.operator.metric("training_operator_jobs_restarted_total") == 1


@pytest.mark.parametrize(
    "exit_code, replaced", [(1, False), (127, False), (128, True), (137, True), (255, True)]
)
def test_exit_code_decides(jobs, exit_code, replaced):
    jobs.create(pytorchjob("mnist", workers=1, policy="ExitCode"))
    jobs.run_all("mnist")
    pods = jobs.pods("mnist")
    assert pods["mnist-worker-0"].spec.restart_policy == "Never"
    jobs.set_pod("mnist-worker-0", "Failed", exit_code=exit_code)
    if not replaced:
        job = jobs.wait_state("mnist", "Failed")
        assert job["status"]["lastFailure"]["exitCode"] == exit_code
        return
    uid = pods["mnist-worker-0"].metadata.uid
    wait_for("a successor", lambda: jobs.pods("mnist")["mnist-worker-0"].metadata.uid != uid)
    assert jobs.job("mnist")["status"]["restartCount"] == 1


def test_backoff_limit(jobs):
    jobs.create(pytorchjob("mnist", workers=1, run_policy={"backoffLimit": 1}))
    jobs.run_all("mnist")
    uid = jobs.pods("mnist")["mnist-worker-0"].metadata.uid
    jobs.set_pod("mnist-worker-0", "Failed")
    wait_for("the last retry", lambda: jobs.pods("mnist")["mnist-worker-0"].metadata.uid != uid)
    jobs.set_pod("mnist-worker-0", "Failed")
    jobs.wait_state("mnist", "Failed")
    assert jobs.condition("mnist", "Failed")["reason"] == "BackoffLimitExceeded"


def test_in_place_restarts_are_counted(jobs):
    jobs.create(pytorchjob("mnist", workers=1))
    jobs.run_all("mnist")
    jobs.set_pod("mnist-worker-0", "Running", restarts=2)
    wait_for("the count", lambda: jobs.job("mnist")["status"].get("restartCount") == 2)
    assert jobs.condition("mnist", "Restarting") is None


def test_delete(jobs):
    jobs.create(pytorchjob("mnist", workers=2))
    jobs.run_all("mnist")
    jobs.delete("mnist")
    wait_for("the children's end by garbage collection",
             lambda: not jobs.pods("mnist") and not jobs.services("mnist"))
    wait_for("the count",
             lambda: jobs.operator.metric("training_operator_jobs_deleted_total") == 1)
    assert len(creations(jobs)) == 4


def test_ttl_deletes_the_job(jobs):
    jobs.create(pytorchjob("mnist", workers=0, run_policy={"ttlSecondsAfterFinished": 1}))
    jobs.run_all("mnist")
    jobs.set_pod("mnist-master-0", "Succeeded")
    wait_for("everything's end", lambda: not jobs.pods("mnist"))
    wait_for("the count",
             lambda: jobs.operator.metric("training_operator_jobs_deleted_total") == 1)


def test_deadline(jobs):
    jobs.create(pytorchjob("mnist", workers=1, run_policy={"activeDeadlineSeconds": 2}))
    jobs.wait_state("mnist", "Failed")
    assert jobs.condition("mnist", "Failed")["reason"] == "DeadlineExceeded"
    jobs.wait_pods("mnist")


def test_suspend_and_resume(jobs):
    jobs.create(pytorchjob("mnist", workers=1))
    jobs.run_all("mnist")
    started = jobs.job("mnist")["status"]["startTime"]
    jobs.patch("mnist", {"spec": {"runPolicy": {"suspend": True}}})
    jobs.wait_state("mnist", "Suspended")
    jobs.wait_pods("mnist")
    assert jobs.job("mnist")["status"]["startTime"] == started
    jobs.patch("mnist", {"spec": {"runPolicy": {"suspend": False}}})
    jobs.run_all("mnist")
    assert jobs.condition("mnist", "Suspended")["status"] == "False"


def test_scale_workers(jobs):
    jobs.create(pytorchjob("mnist", workers=1))
    jobs.run_all("mnist")
    jobs.cluster.kubectl("scale", "pytorchjob/mnist", "-n", jobs.namespace, "--replicas=3")
    jobs.wait_pods("mnist", "mnist-master-0", *(f"mnist-worker-{i}" for i in range(3)))
    jobs.patch("mnist", {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 1}}}})
    jobs.wait_pods("mnist", "mnist-master-0", "mnist-worker-0")
    assert jobs.job("mnist")["status"].get("restartCount", 0) == 0


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["SIGTERM", "SIGKILL"])
def test_restarted_in_the_middle_nothing_is_created_twice(stage, how):
    """Restarts while children are made, while they run, while one fails, and after the end."""
    stage.start()
    stage.create(pytorchjob("mnist", workers=2))
    wait_for("the first sign of life", lambda: creations(stage))
    stage.restart(how=how)
    uids = {n: p.metadata.uid for n, p in stage.wait_pods("mnist", *PODS).items()}
    stage.set_pods("mnist", "Running")
    stage.restart(how=how)
    stage.wait_state("mnist", "Running")
    stage.set_pod("mnist-worker-1", "Failed")
    stage.restart(how=how)
    wait_for("a successor",
             lambda: stage.pods("mnist")["mnist-worker-1"].metadata.uid != uids["mnist-worker-1"])
    stage.set_pods("mnist", "Succeeded")
    stage.wait_state("mnist", "Succeeded")
    stage.restart(how=how)
    stage.settle()
    for pod in ("mnist-master-0", "mnist-worker-0"):
        assert stage.pods("mnist")[pod].metadata.uid == uids[pod]
    assert stage.job("mnist")["status"]["restartCount"] == 1
    made = creations(stage)
    assert made == sorted([("pods", p) for p in PODS] + [("pods", "mnist-worker-1"),
                                                         ("services", "mnist-master-0")])


def test_sigterm_exits_with_0_under_load(stage):
    stage.start()
    for i in range(20):
        stage.create(pytorchjob(f"j{i}", workers=2))
    assert stage.operator.stop() == 0
    assert "still hangs" not in stage.operator.log.read_text()
