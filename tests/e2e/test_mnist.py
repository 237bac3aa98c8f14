"""The demo's job, on real nodes with real images: what a newcomer sees is what is promised."""

import re

import pytest


@pytest.fixture(scope="module")
def trained(jobs, example):
    jobs.create(example())
    job = jobs.wait_for_end("mnist", seconds=1200)
    assert job["status"]["conditions"][-1]["type"] == "Succeeded", jobs.describe("mnist")
    return job


def test_accuracy_after_one_epoch(trained, jobs):
    log = jobs.log("mnist-master-0")
    accuracy = re.findall(r"^accuracy=([0-9.]+)$", log, re.MULTILINE)
    assert accuracy, f"no accuracy line in the master's log:\n{log[-2000:]}"
    assert float(accuracy[-1]) > 0.975


def test_conditions_tell_the_whole_life(trained):
    conditions = trained["status"]["conditions"]
    assert [(c["type"], c["status"]) for c in conditions] == [
        ("Created", "True"), ("Running", "False"), ("Succeeded", "True")]
    assert [c["reason"] for c in conditions] == [
        "PyTorchJobCreated", "PyTorchJobRunning", "PyTorchJobSucceeded"]
    assert trained["status"]["startTime"] <= trained["status"]["completionTime"]
    assert trained["status"]["replicaStatuses"]["Master"]["succeeded"] == 1


def test_events_once_for_what_happened(trained, jobs):
    def complete():
        events = jobs.events("mnist")
        return events if "PyTorchJobSucceeded" in [e.reason for e in events] else None

    events = jobs.wait_until("the event PyTorchJobSucceeded", complete)
    created = sorted(e.message for e in events if e.reason == "SuccessfulCreatePod")
    assert created == ["Created pod: mnist-master-0", "Created pod: mnist-worker-0",
                       "Created pod: mnist-worker-1"]
    assert [e.message for e in events if e.reason == "SuccessfulCreateService"] == [
        "Created service: mnist-master-0"]
    assert [e.type for e in events if e.reason == "PyTorchJobSucceeded"] == ["Normal"]


@pytest.mark.parametrize("label", ["job-name", "training.kubeflow.org/job-name"])
def test_logs_by_label(trained, kubectl, namespace, label):
    printed = kubectl("logs", "-n", namespace, "-l", f"{label}=mnist", "--tail=-1", "--prefix")
    pods = set(re.findall(r"\[pod/([^/]+)/", printed))
    assert pods >= {"mnist-master-0"}, printed[:2000]
    assert re.search(r"accuracy=0\.9", printed)


def test_master_is_found_by_its_role(trained, jobs):
    names = [p.metadata.name for p in jobs.pods("training.kubeflow.org/job-name=mnist,"
                                                 "training.kubeflow.org/job-role=master")]
    assert names == ["mnist-master-0"]


def test_columns(trained, kubectl, namespace):
    header, row = kubectl("get", "pytorchjob", "mnist", "-n", namespace).splitlines()
    assert header.split() == ["NAME", "STATE", "READY", "RESTARTS", "AGE"]
    assert row.split()[:2] == ["mnist", "Succeeded"]


def test_describe_reads_well(trained, kubectl, namespace):
    printed = kubectl("describe", "pytorchjob", "mnist", "-n", namespace)
    assert "PyTorchJobSucceeded" in printed
    assert "Created pod: mnist-master-0" in printed


def test_deleting_the_job_removes_its_children(trained, jobs):
    jobs.delete("mnist")
    jobs.wait_until("the pods being gone",
                    lambda: not jobs.pods("training.kubeflow.org/job-name=mnist"), seconds=120)
    jobs.wait_until("the Service being gone",
                    lambda: not jobs.core.list_namespaced_service(jobs.namespace).items, seconds=120)
