"""Events on the PyTorchJob: each once, summed up above ten, none lost."""

import collections

from operator_rig import pytorchjob, wait_for


def test_each_once_over_a_jobs_life(jobs):
    jobs.create(pytorchjob("mnist", workers=1))
    jobs.run_all("mnist")
    uid = jobs.pods("mnist")["mnist-worker-0"].metadata.uid
    jobs.set_pod("mnist-worker-0", "Failed", exit_code=2)
    wait_for("a successor", lambda: jobs.pods("mnist")["mnist-worker-0"].metadata.uid != uid)
    jobs.set_pod("mnist-worker-0", "Running")
    jobs.wait_state("mnist", "Running")
    jobs.set_pods("mnist", "Succeeded")
    jobs.wait_state("mnist", "Succeeded")
    wait_for("the last event", lambda: jobs.events("mnist", reason="PyTorchJobSucceeded"))
    jobs.settle()
    found = collections.Counter()
    for event in jobs.events("mnist"):
        found[event.reason, event.message.partition(":")[2].strip()] += event.count or 1
        assert event.source.component == "pytorch-operator"
        assert event.involved_object.uid == jobs.job("mnist")["metadata"]["uid"]
    assert found["SuccessfulCreateService", "mnist-master-0"] == 1
    assert found["SuccessfulCreatePod", "mnist-master-0"] == 1
    assert found["SuccessfulCreatePod", "mnist-worker-0"] == 2
    assert found["SuccessfulDeletePod", "mnist-worker-0"] == 1
    reasons = collections.Counter(e.reason for e in jobs.events("mnist"))
    assert reasons["PyTorchJobRestarting"] == reasons["PyTorchJobSucceeded"] == 1


def test_above_ten_one_event_sums_them_up(jobs):
    jobs.create(pytorchjob("mnist", workers=20))
    jobs.wait_pods("mnist", "mnist-master-0", *(f"mnist-worker-{i}" for i in range(20)))
    wait_for("the event", lambda: jobs.events("mnist", reason="SuccessfulCreatePod"))
    jobs.settle()
    (event,) = jobs.events("mnist", reason="SuccessfulCreatePod")
    assert event.message == "Created 21 pods: mnist-master-0 … mnist-worker-19"


def test_none_lost_in_a_burst(jobs):
    """200 jobs here; a thousand in the unit tests, with 5,000 events."""
    names = [f"burst-{i}" for i in range(200)]
    for name in names:
        jobs.create(pytorchjob(name, workers=0))
    wait_for("all pods", lambda: len(jobs.pods()) == len(names), patience=180)
    jobs.settle()
    found = collections.Counter()
    for event in jobs.events(reason="SuccessfulCreatePod"):
        found[event.involved_object.name] += event.count or 1
    assert found == collections.Counter(names)
    assert jobs.operator.metric("training_operator_events_dropped_total") == 0
    assert jobs.operator.metric("training_operator_jobs_created_total") == len(names)
