"""What the children of a job look like: environment, labels, ports, owner references."""

import pytest

from operator_rig import pytorchjob, wait_for


def environment(pod, container="pytorch"):
    """The environment of a container; fails on duplicates."""
    found = {}
    for c in pod.spec.containers:
        if c.name == container:
            for variable in c.env or []:
                assert variable.name not in found, f"{variable.name} twice"
                found[variable.name] = variable.value
    return found


def common(addr, port="23456", size="3", nodes="3", nproc="auto"):
    return {
        "PYTHONUNBUFFERED": "1", "MASTER_ADDR": addr, "MASTER_PORT": port, "WORLD_SIZE": size,
        "PET_MASTER_ADDR": addr, "PET_MASTER_PORT": port, "PET_NNODES": nodes,
        "PET_NPROC_PER_NODE": nproc,
    }  # fmt: skip


def test_environment_of_master_and_workers(jobs):
    jobs.create(pytorchjob("mnist", workers=2))
    pods = jobs.wait_pods("mnist", "mnist-master-0", "mnist-worker-0", "mnist-worker-1")
    for rank, name in enumerate(("mnist-master-0", "mnist-worker-0", "mnist-worker-1")):
        wanted = common("mnist-master-0") | {"RANK": str(rank), "PET_NODE_RANK": str(rank)}
        assert environment(pods[name]) == wanted


def test_environment_of_worker_only_job_is_complete(jobs):
    jobs.create(pytorchjob("mnist", master=False, workers=2, nprocPerNode="2"))
    pods = jobs.wait_pods("mnist", "mnist-worker-0", "mnist-worker-1")
    for rank, name in enumerate(("mnist-worker-0", "mnist-worker-1")):
        wanted = common("mnist-worker-0", size="4", nodes="2", nproc="2")
        assert environment(pods[name]) == wanted | {"RANK": str(rank), "PET_NODE_RANK": str(rank)}


def test_elastic_environment(jobs):
    elastic = {"minReplicas": 1, "maxReplicas": 3, "rdzvBackend": "c10d", "maxRestarts": 5}
    jobs.create(pytorchjob("mnist", master=False, workers=2, elasticPolicy=elastic))
    pods = jobs.wait_pods("mnist", "mnist-worker-0", "mnist-worker-1")
    found = environment(pods["mnist-worker-1"])
    assert found["PET_RDZV_ENDPOINT"] == "mnist-worker-0:23456"
    assert found["PET_RDZV_BACKEND"] == "c10d"
    assert found["PET_NNODES"] == "1:3"
    assert found["PET_MAX_RESTARTS"] == "5"
    wait_for("a Service for each",
             lambda: set(jobs.services("mnist")) == {"mnist-worker-0", "mnist-worker-1"})


@pytest.mark.parametrize("flags, names", [
    ((), {"mnist-master-0"}),
    (("--service-per-replica",), {"mnist-master-0", "mnist-worker-0"}),
])
def test_services(stage, flags, names):
    stage.start(*flags)
    stage.create(pytorchjob("mnist", workers=1))
    stage.wait_pods("mnist", "mnist-master-0", "mnist-worker-0")
    services = stage.services("mnist")
    assert set(services) == names
    spec = services["mnist-master-0"].spec
    assert spec.cluster_ip == "None"
    assert spec.publish_not_ready_addresses
    assert [(p.name, p.port) for p in spec.ports] == [("pytorchjob-port", 23456)]
    pods = stage.core.list_namespaced_pod(
        stage.namespace, label_selector=",".join(f"{k}={v}" for k, v in spec.selector.items())
    )
    assert [p.metadata.name for p in pods.items] == ["mnist-master-0"]


def test_labels_and_owner(jobs):
    made = jobs.create(pytorchjob("mnist", workers=1))
    pods = jobs.wait_pods("mnist", "mnist-master-0", "mnist-worker-0")
    labels = pods["mnist-worker-0"].metadata.labels
    prefix = "training.kubeflow.org/"
    wanted = {
        prefix + "operator-name": "pytorchjob-controller", prefix + "job-name": "mnist",
        prefix + "replica-type": "worker", prefix + "replica-index": "0",
        "group-name": "kubeflow.org", "controller-name": "pytorch-operator", "job-name": "mnist",
        "pytorch-job-name": "mnist", "replica-type": "worker", "replica-index": "0",
        "pytorch-replica-type": "worker", "pytorch-replica-index": "0",
    }  # fmt: skip
    assert labels.items() >= wanted.items()
    assert "job-role" not in labels
    master = pods["mnist-master-0"].metadata.labels
    assert master["job-role"] == master[prefix + "job-role"] == "master"
    for child in (*pods.values(), *jobs.services("mnist").values()):
        (owner,) = child.metadata.owner_references
        assert (owner.kind, owner.name, owner.uid) == ("PyTorchJob", "mnist", made["metadata"]["uid"])
        assert owner.controller and owner.block_owner_deletion


def test_rendezvous_variables_are_replaced_with_one_warning(jobs):
    own = [{"name": "WORLD_SIZE", "value": "1"}, {"name": "PYTHONUNBUFFERED", "value": "0"},
           {"name": "RANK", "value": "7"}, {"name": "LR", "value": "0.1"}]  # fmt: skip
    jobs.create(pytorchjob("mnist", workers=1, container={"env": own}))
    pods = jobs.wait_pods("mnist", "mnist-master-0", "mnist-worker-0")
    found = environment(pods["mnist-worker-0"])
    assert found["WORLD_SIZE"] == "2"
    assert found["RANK"] == "1"
    assert (found["PYTHONUNBUFFERED"], found["LR"]) == ("0", "0.1")
    # In place, so that $(WORLD_SIZE) in later variables keeps working.
    names = [v.name for v in pods["mnist-worker-0"].spec.containers[0].env]
    assert names.index("WORLD_SIZE") < names.index("LR")
    jobs.run_all("mnist")
    jobs.settle()
    warnings = [e for e in jobs.events("mnist") if e.type == "Warning"]
    assert len(warnings) == 1
    assert "WORLD_SIZE" in warnings[0].message and "RANK" in warnings[0].message
    assert warnings[0].count in (None, 1)


def test_the_port_of_the_template_is_the_rendezvous_port(jobs):
    ports = [{"name": "pytorchjob-port", "containerPort": 12345}]
    jobs.create(pytorchjob("mnist", workers=1, container={"ports": ports}))
    pods = jobs.wait_pods("mnist", "mnist-master-0", "mnist-worker-0")
    assert environment(pods["mnist-worker-0"])["MASTER_PORT"] == "12345"
    assert jobs.services("mnist")["mnist-master-0"].spec.ports[0].port == 12345


def test_template_metadata_is_kept_and_restart_policy_overridden(jobs):
    job = pytorchjob("mnist", workers=0, policy="ExitCode")
    template = job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    template["metadata"] = {"labels": {"team": "a"}, "annotations": {"note": "b"}}
    template["spec"]["restartPolicy"] = "Always"
    jobs.create(job)
    pod = jobs.wait_pods("mnist", "mnist-master-0")["mnist-master-0"]
    assert pod.metadata.labels["team"] == "a"
    assert pod.metadata.annotations["note"] == "b"
    assert pod.spec.restart_policy == "Never"
    wait_for("the warning", lambda: [e for e in jobs.events("mnist") if e.type == "Warning"])


def test_init_container(stage):
    stage.start("--init-container-image=busybox:1")
    stage.create(pytorchjob("mnist", workers=1))
    never = pytorchjob("never", workers=1)
    never["metadata"]["annotations"] = {"pytorch-operator.kubeflow.org/init-container": "never"}
    stage.create(never)
    pods = stage.wait_pods("mnist", "mnist-master-0", "mnist-worker-0")
    (init,) = pods["mnist-worker-0"].spec.init_containers
    assert (init.name, init.image) == ("init-pytorch", "busybox:1")
    assert not pods["mnist-master-0"].spec.init_containers
    pods = stage.wait_pods("never", "never-master-0", "never-worker-0")
    assert not pods["never-worker-0"].spec.init_containers
