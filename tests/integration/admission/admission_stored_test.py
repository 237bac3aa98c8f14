"""Jobs that were stored before the rules existed: they may be invalid, but not stuck."""

import copy
import json
import re
import time

import admission_tables as tables
import conftest
import pytest
from kubernetes.client import ApiException

# A twin of the CRD under another group, whose rules can come later than its objects.
GROUP = "older.example.com"
NAME = f"pytorchjobs.{GROUP}"


def twin(with_rules):
    crd = copy.deepcopy(conftest.crd())
    crd["metadata"]["name"] = NAME
    crd["spec"]["group"] = GROUP
    if not with_rules:
        version = crd["spec"]["versions"][0]
        del version["subresources"]["scale"]  # it checks types of its own
        schema = version["schema"]["openAPIV3Schema"]
        schema["properties"] = {
            key: {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            for key in ("spec", "status")
        }
        del schema["x-kubernetes-validations"]
    return crd


def stored(patch):
    return dict(tables.job(patch), apiVersion=f"{GROUP}/v1")


def invalid_jobs():
    """Every bad job of the tables, with a readable identity."""
    for topic in tables.TOPICS:
        for rule in tables.read(topic)["rules"]:
            for number, case in enumerate(rule["bad"]):
                yield f"{topic}: {rule['rule']} #{number}", case


# What the API server does not forgive, with any CRD. Neither training-operator's CRD nor ours lets
# such a job in.
WRONG_TYPE = re.compile("of type")
TWO_OF_A_NAME = re.compile("Duplicate value")  # a list with equal keys is not equal to itself
NO_KEY = re.compile(r"containers\[0\]\.name")  # of a list that has keys
# The scale subresource wants a number from 0 to 2^31-1.
NO_SCALE = re.compile("replicas (-1: |should be less than or equal to *$)", re.MULTILINE)


def mentions(case, *patterns):
    """Whether the errors of a case, paths and messages, match one of the patterns."""
    text = "\n".join(f"{e['path']} {e['message']} {e.get('api', '')}" for e in case["errors"])
    return any(pattern.search(text) for pattern in patterns)


@pytest.fixture(scope="module")
def older(bare_cluster):
    """The names of jobs stored without rules, by case, after the rules came."""
    bare_cluster.kubectl("apply", "-f", "-", text=json.dumps(twin(with_rules=False)))
    bare_cluster.wait_served(NAME)
    jobs = bare_cluster.jobs(bare_cluster.namespace("older"), GROUP)
    names = {}
    for number, (identity, case) in enumerate(invalid_jobs()):
        patch = copy.deepcopy(case["patch"])
        name = patch.get("metadata", {}).get("name", "job") + f"-{number}"
        patch["metadata"] = {"name": name, "namespace": "older"}
        jobs.create(stored(patch))
        names[identity] = name
    bare_cluster.kubectl("apply", "-f", "-", text=json.dumps(twin(with_rules=True)))
    for _ in range(300):  # the API server takes a moment to take the rules up
        try:
            jobs.create(stored({"metadata": {"namespace": "older", "name": "x"}, "spec": None}),
                        dry_run="All")  # fmt: skip
        except ApiException as error:
            assert error.status == 422, error.body
            break
        time.sleep(0.1)
    else:
        raise AssertionError("the rules never came into force")
    yield jobs, names
    bare_cluster.definitions.delete_custom_resource_definition(NAME)


def failed(message):
    return {"conditions": [{"type": "Failed", "status": "True", "message": message}]}


@pytest.mark.parametrize(
    "identity, case", [pytest.param(*found, id=found[0]) for found in invalid_jobs()]
)
def test_an_invalid_stored_job_is_not_stuck(older, identity, case):
    jobs, names = older
    name = names[identity]
    if not mentions(case, WRONG_TYPE, TWO_OF_A_NAME):
        written = jobs.patch_status(name, failed("invalid"))
        assert written["status"]["conditions"][0]["message"] == "invalid"
        if not mentions(case, NO_KEY, NO_SCALE):
            jobs.patch(name, {"metadata": {"labels": {"a": "b"}}})
            jobs.patch(name, {"metadata": {"finalizers": ["example.com/keep"]}})
            jobs.patch(name, {"metadata": {"finalizers": None}})
    jobs.delete(name)
    with pytest.raises(ApiException) as gone:
        jobs.get(name)
    assert gone.value.status == 404
