"""Every rule of the tables, held by a real API server."""

import admission_tables as tables
import pytest
from kubernetes.client import ApiException


def cases(kind):
    """The cases of all tables, with a readable identity each."""
    return [
        pytest.param(case, id=f"{topic}: {rule['rule']} #{number}")
        for topic in tables.TOPICS
        for rule in tables.read(topic)["rules"]
        for number, case in enumerate(rule[kind])
    ]


@pytest.mark.parametrize("case", cases("bad"))
def test_a_bad_job_is_refused_with_every_offending_field(cluster, case):
    with pytest.raises(ApiException) as refused:
        cluster.jobs().create(tables.job(case["patch"]), dry_run="All")
    found = tables.refusal(refused.value)
    for error in case["errors"]:
        messages = found.pop(error["path"], [])
        expected = error.get("api", error["message"])
        assert any(expected in message for message in messages), (error, found, messages)
    assert not found, "also refused for"


@pytest.mark.parametrize("patch", cases("good"))
def test_its_good_neighbour_is_accepted(cluster, patch):
    cluster.jobs().create(tables.job(patch), dry_run="All", field_validation="Strict")


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case["rule"]) for case in tables.read("transitions")["transitions"]]
)
def test_transitions(cluster, case):
    jobs = cluster.jobs(cluster.namespace("transitions"))
    job = tables.merged(tables.job(case.get("from")), {"metadata": {"namespace": "transitions"}})
    name = job["metadata"]["name"]
    jobs.create(job)
    try:
        if "status" in case:
            jobs.patch_status(name, case["status"])
        change = (
            (lambda: jobs.scale(name, case["scale"]))
            if "scale" in case
            else (lambda: jobs.patch(name, case["change"]))
        )
        if "error" not in case:
            change()
            if "scale" in case:
                stored = jobs.get(name)["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"]
                assert stored == case["scale"]
            return
        before = jobs.get(name)
        with pytest.raises(ApiException) as refused:
            change()
        found = tables.refusal(refused.value)
        assert list(found) == [case["error"]["path"]], found
        assert any(case["error"]["message"] in message for message in found[case["error"]["path"]])
        assert jobs.get(name) == before
    finally:
        jobs.delete(name)
