"""Containers that end badly, run by a real kubelet."""

IMAGE = "mnist-trainer"


def job(name, script, policy):
    return {
        "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": {"Master": {
            "restartPolicy": policy,
            "template": {"spec": {
                "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "pytorch", "image": IMAGE, "imagePullPolicy": "IfNotPresent",
                                "command": ["sh", "-c", script]}]}}}}},
    }


def test_exit_code_under_never_fails_the_job(jobs):
    jobs.create(job("exits-3", "echo about to fail; exit 3", "Never"))
    ended = jobs.wait_for_end("exits-3", seconds=180)
    failed = ended["status"]["conditions"][-1]
    assert (failed["type"], failed["status"]) == ("Failed", "True"), jobs.describe("exits-3")
    assert "exits-3-master-0" in failed["message"]
    assert "3" in failed["message"].replace("exits-3-master-0", "").replace("exits-3", "")
    assert ended["status"]["lastFailure"]["exitCode"] == 3
    assert ended["status"]["replicaStatuses"]["Master"]["failed"] == 1
    # The failed pod stays, for its log.
    assert "about to fail" in jobs.log("exits-3-master-0")
    event = jobs.wait_until("the event PyTorchJobFailed", lambda: [
        e for e in jobs.events("exits-3") if e.reason == "PyTorchJobFailed"])
    assert [e.type for e in event] == ["Warning"]


def test_kubelet_restarts_in_place_under_on_failure(jobs):
    # The first run of the container leaves a mark in the pod's volume, the second one succeeds.
    body = job("second-try", "[ -e /mark/seen ] || { touch /mark/seen; exit 1; }", "OnFailure")
    spec = body["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    spec["volumes"] = [{"name": "mark", "emptyDir": {}}]
    spec["containers"][0]["volumeMounts"] = [{"name": "mark", "mountPath": "/mark"}]
    jobs.create(body)
    ended = jobs.wait_for_end("second-try", seconds=180)
    assert ended["status"]["conditions"][-1]["type"] == "Succeeded", jobs.describe("second-try")
    assert ended["status"]["restartCount"] == 1
    pods = jobs.pods("training.kubeflow.org/job-name=second-try")
    assert [p.status.container_statuses[0].restart_count for p in pods] == [1]


def test_environment_and_name_of_the_rendezvous_host(jobs):
    # A headless Service's name needs a pod behind it, so the master outlives the worker.
    script = ('echo "$MASTER_ADDR $MASTER_PORT $WORLD_SIZE $RANK $PET_NNODES $PYTHONUNBUFFERED"; '
              'for i in $(seq 20); do getent hosts "$MASTER_ADDR" && { sleep $((10 - 10 * RANK)); exit 0; }; '
              'sleep 1; done; exit 1')
    body = job("env", script, "Never")
    replicas = body["spec"]["pytorchReplicaSpecs"]
    replicas["Worker"] = {**replicas["Master"], "replicas": 1}
    jobs.create(body)
    ended = jobs.wait_for_end("env", seconds=180)
    assert ended["status"]["conditions"][-1]["type"] == "Succeeded", jobs.describe("env")
    assert ended["status"]["replicaStatuses"]["Worker"]["succeeded"] == 1, jobs.describe("env")
    assert jobs.log("env-master-0").splitlines()[0] == "env-master-0 23456 2 0 2 1"
    assert jobs.log("env-worker-0").splitlines()[0] == "env-master-0 23456 2 1 2 1"
