"""The CRD as a whole: how it is made, applied, explained, printed, pruned and defaulted."""

import json
import subprocess
import sys

import admission_tables as tables
import conftest
import pytest
import yaml
from kubernetes.client import ApiException

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MAX_ANNOTATIONS = 256 * 1024


def test_the_committed_files_are_what_the_generators_make():
    for generator in ("crds/generate.py", "crds/reference.py"):
        done = subprocess.run(
            [sys.executable, str(conftest.ROOT / generator), "--check"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


def test_it_is_applied_from_the_clients_side_again_and_again(cluster):
    done = cluster.kubectl("apply", "-f", str(conftest.CRD.parent))
    assert done.stdout.strip().endswith("unchanged"), done.stdout
    assert done.stderr == ""
    crd = cluster.definitions.read_custom_resource_definition("pytorchjobs.kubeflow.org")
    size = sum(len(k) + len(v.encode()) for k, v in crd.metadata.annotations.items())
    assert len(crd.metadata.annotations[LAST_APPLIED]) > 100000
    assert size < MAX_ANNOTATIONS
    assert crd.status.accepted_names.kind == "PyTorchJob"
    wrong = [c for c in crd.status.conditions if c.type == "NonStructuralSchema"]
    assert not wrong


def test_it_is_applied_from_the_servers_side(cluster):
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f",
                    str(conftest.CRD.parent))  # fmt: skip


def fields(schema, path=""):
    """Every property below a schema, with its path."""
    for name, child in schema.get("properties", {}).items():
        yield f"{path}.{name}", child
        yield from fields(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from fields(schema[key], path + "[]")


def test_every_field_is_explained(cluster):
    recursive = cluster.kubectl("explain", "pytorchjob", "--recursive").stdout
    for name in ("pytorchReplicaSpecs", "restartScope", "averageUtilization", "accountedPods"):
        assert name in recursive
    document = json.loads(cluster.kubectl("get", "--raw", "/openapi/v3/apis/kubeflow.org/v1").stdout)
    schema = document["components"]["schemas"]["org.kubeflow.v1.PyTorchJob"]
    found = dict(fields({"properties": {k: schema["properties"][k] for k in ("spec", "status")}}))
    assert len(found) > 1000
    assert [path for path, field in found.items() if not field.get("description")] == []


@pytest.mark.parametrize(
    "path", ["spec", "spec.runPolicy.cleanPodPolicy", "spec.pytorchReplicaSpecs.template.spec",
             "status.lastFailure"]
)  # fmt: skip
def test_explain_reads_well(cluster, path):
    text = cluster.kubectl("explain", f"pytorchjob.{path}").stdout
    assert "DESCRIPTION:" in text
    assert "<empty>" not in text


def test_columns(cluster):
    name = "columns"
    jobs = cluster.jobs()
    jobs.create(tables.job({"metadata": {"name": name}}))
    try:
        jobs.patch_status(
            name,
            {
                "conditions": [
                    {"type": "Created", "status": "True"},
                    {"type": "Running", "status": "True"},
                ],
                "summary": "2/3",
                "restartCount": 4,
                "waiting": {"pod": "p", "reason": "Unschedulable", "message": "m"},
                "lastFailure": {"pod": "columns-worker-1", "reason": "OOMKilled"},
            },
        )
        header, row = cluster.kubectl("get", "pytorchjob", name).stdout.splitlines()
        assert header.split() == ["NAME", "STATE", "READY", "RESTARTS", "AGE"]
        assert row.split()[:4] == [name, "Running", "2/3", "4"]
        header, row = cluster.kubectl("get", "pytorchjob", name, "-o", "wide").stdout.splitlines()
        assert header.split()[5:] == ["WAITING", "LAST-FAILURE", "FAILED-POD"]
        assert row.split()[5:] == ["Unschedulable", "OOMKilled", "columns-worker-1"]
    finally:
        jobs.delete(name)


def test_only_the_run_policy_is_defaulted(cluster):
    sent = tables.job({"metadata": {"name": "defaults"}})
    stored = cluster.jobs().create(sent, dry_run="All")
    assert stored["spec"] == dict(sent["spec"], runPolicy={})


def test_a_template_is_kept_whole(cluster):
    template = {
        "metadata": {
            "labels": {"a": "b"},
            "annotations": {"sidecar.istio.io/inject": "false"},
            "finalizers": ["example.com/keep"],
            "name": "n",
        },
        "spec": {
            "containers": [
                {
                    "name": "pytorch",
                    "image": "train:1",
                    "ports": [{"containerPort": 23456, "name": "pytorchjob-port", "protocol": "TCP"}],
                    "resources": {
                        "limits": {"cpu": 1, "memory": "1.5Gi", "nvidia.com/gpu": 1},
                        "requests": {"cpu": "500m"},
                        "claims": [{"name": "c"}],
                    },
                    "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
                    "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 3},
                    "readinessProbe": {"tcpSocket": {"port": 8080}},
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                }
            ],
            "volumes": [
                {"name": "data", "hostPath": {"path": "/tmp"}},
                {"name": "cm", "projected": {"sources": [{"configMap": {"name": "c"}}]}},
                {
                    "name": "scratch",
                    "ephemeral": {
                        "volumeClaimTemplate": {
                            "metadata": {"labels": {"a": "b"}},
                            "spec": {
                                "accessModes": ["ReadWriteOnce"],
                                "resources": {"requests": {"storage": "1Gi"}},
                            },
                        }
                    },
                },
            ],
            "imagePullSecrets": [{"name": "s"}],
            "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 30}],
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"a": "b"}},
                }
            ],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}
                        ]
                    }
                }
            },
            "securityContext": {"fsGroup": 1000, "sysctls": [{"name": "n", "value": "v"}]},
            "overhead": {"cpu": "10m"},
            "schedulerName": "volcano",
        },
    }
    job = tables.job({"metadata": {"name": "whole"}})
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"] = template
    stored = cluster.jobs().create(job, dry_run="All", field_validation="Strict")
    assert stored["spec"]["pytorchReplicaSpecs"]["Worker"]["template"] == template


def test_unknown_fields_are_pruned(cluster):
    job = tables.job(
        {
            "metadata": {"name": "pruned"},
            "spec": {
                "cleanPodPolicy": "None",  # flat, as the oldest SDK sends it
                "ttlSecondsAfterFinished": 5,
                "runPolicy": {"unknown": 1},
                "pytorchReplicaSpecs": {"Worker": {"template": {"spec": {"unknown": {"a": 1}}}}},
            },
        }
    )
    stored = cluster.jobs().create(job, dry_run="All")
    assert stored["spec"] == dict(tables.job()["spec"], runPolicy={})
    with pytest.raises(ApiException) as refused:
        cluster.jobs().create(job, dry_run="All", field_validation="Strict")
    message = json.loads(refused.value.body)["message"]
    for path in ("spec.cleanPodPolicy", "spec.runPolicy.unknown", "template.spec.unknown"):
        assert path in message


def test_scale(cluster):
    name = "scaled"
    jobs = cluster.jobs()
    jobs.create(tables.job({"metadata": {"name": name}}))
    try:
        jobs.patch_status(name, {"replicaStatuses": {"Worker": {"active": 2, "selector": "a=b"}}})
        scale = jobs.get_scale(name)
        assert scale["spec"] == {"replicas": 2}
        assert scale["status"] == {"replicas": 2, "selector": "a=b"}
        cluster.kubectl("scale", "pytorchjob", name, "--replicas=3")
        assert jobs.get_scale(name)["spec"] == {"replicas": 3}
        refused = cluster.kubectl("scale", "pytorchjob", name, "--replicas=-1", check=False)
        assert refused.returncode != 0
    finally:
        jobs.delete(name)


def test_two_appliers_share_the_lists_of_a_template(cluster):
    def applied(manager, container):
        job = tables.job({"metadata": {"name": "shared"}})
        container = dict(container, name="pytorch", image="train:1")
        worker = job["spec"]["pytorchReplicaSpecs"]["Worker"]
        worker["template"]["spec"]["containers"] = [container]
        job["spec"]["runPolicy"] = {"suspend": True}
        cluster.kubectl("apply", "--server-side", f"--field-manager={manager}", "-f", "-",
                        text=yaml.safe_dump(job))  # fmt: skip

    try:
        applied("one", {"env": [{"name": "A", "value": "1"}], "ports": [{"containerPort": 1}]})
        applied("two", {"env": [{"name": "B", "value": "2"}], "ports": [{"containerPort": 2}]})
        stored = cluster.jobs().get("shared")["spec"]["pytorchReplicaSpecs"]["Worker"]
        (container,) = stored["template"]["spec"]["containers"]
        assert {e["name"] for e in container["env"]} == {"A", "B"}
        assert {p["containerPort"] for p in container["ports"]} == {1, 2}
    finally:
        cluster.jobs().delete("shared")


def test_a_status_is_kept_whole(cluster):
    time = "2026-01-02T03:04:05Z"
    status = {
        "conditions": [
            {"type": "Created", "status": "True", "reason": "PyTorchJobCreated", "message": "m",
             "lastUpdateTime": time, "lastTransitionTime": time}
        ],
        "replicaStatuses": {
            "Master": {"active": 1, "ready": 1, "selector": "a=b"},
            "Worker": {"succeeded": 2, "failed": 1, "completedIndexes": "0-1", "selector": "a=b",
                       "labelSelector": {"matchLabels": {"a": "b"}}},
        },
        "startTime": time, "completionTime": time, "lastReconcileTime": time,
        "observedGeneration": 3, "summary": "1/3", "restartCount": 2, "attempt": 1,
        "accountedPods": [{"uid": f"u{i}", "restarts": i, "failed": True} for i in range(500)],
        "waiting": {"pod": "p", "reason": "r", "message": "m"},
        "lastFailure": {"pod": "p", "replicaType": "Worker", "index": 1, "exitCode": 137,
                        "reason": "OOMKilled", "message": "m", "time": time},
    }  # fmt: skip
    jobs = cluster.jobs()
    jobs.create(tables.job({"metadata": {"name": "status"}}))
    try:
        assert jobs.patch_status("status", status)["status"] == status
        with pytest.raises(ApiException) as refused:
            jobs.patch_status("status", {"accountedPods": status["accountedPods"] + [{"uid": "u"}]})
        assert list(tables.refusal(refused.value)) == ["status.accountedPods"]
    finally:
        jobs.delete("status")
