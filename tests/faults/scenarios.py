"""What happens to a job, as scripts. Each waits for what it needs to see, so that it goes the same
way however late the operator is."""

import dataclasses
import datetime
from collections.abc import Callable

MASTER = "job-master-0"


def worker(index):
    return f"job-worker-{index}"


def job(workers=1, master=True, restart="OnFailure", **run_policy):
    container = {"name": "pytorch", "image": "example.com/train:1"}
    replica = {"restartPolicy": restart, "template": {"spec": {"containers": [container]}}}
    replicas = {"Master": {"replicas": 1, **replica}} if master else {}
    if workers:
        replicas["Worker"] = {"replicas": workers, **replica}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "job"},
        "spec": {"pytorchReplicaSpecs": replicas, "runPolicy": run_policy},
    }


@dataclasses.dataclass
class Scenario:
    """`script(world, kubelet)` drives the job to its end. `loose`: conditions that have become false
    depend on how fast things go; `racing`: so do the numbers of what is made, what is refused and how
    often something is told."""

    name: str
    script: Callable
    loose: bool = False
    racing: bool = False


SCENARIOS = {}


def scenario(name, **options):
    def register(script):
        SCENARIOS[name] = Scenario(name, script, **options)
        return script

    return register


async def finish(world, kubelet, *workers, incarnation=1):
    """The Master's program ends well, then those of its workers."""
    kubelet.exit(0, MASTER, incarnation=incarnation)
    await world.condition("Succeeded")
    kubelet.exit(0, *workers, incarnation=incarnation)


async def gone(world, *names):
    pods = world.objects["pods"]
    await world.until(lambda: not any(name in pods for name in names), f"{names} gone")


async def edit(world, spec):
    await world.patch("pytorchjobs", "job", {"spec": spec})


@scenario("success")
async def _(world, kubelet):
    await world.create("pytorchjobs", job(workers=2))
    await world.running("3/3")
    await finish(world, kubelet, worker(0), worker(1))


@scenario("success-at-once", loose=True)
async def _(world, kubelet):
    # Nobody waits for the operator to see that they run.
    await world.create("pytorchjobs", job(cleanPodPolicy="None"))
    await world.until(lambda: len(world.objects["pods"]) == 2, "two pods")
    kubelet.exit(0, MASTER, worker(0))
    await world.condition("Succeeded")


@scenario("workers-only")
async def _(world, kubelet):
    await world.create("pytorchjobs", job(workers=2, master=False))
    await world.running("2/2")
    kubelet.exit(0, worker(1))
    await world.job_until(
        lambda job: job["status"]["replicaStatuses"]["Worker"].get("succeeded") == 1, "one success"
    )
    kubelet.exit(0, worker(0))


@scenario("worker-replaced")
async def _(world, kubelet):
    await world.create("pytorchjobs", job(restart="ExitCode"))
    await world.running("2/2")
    kubelet.exit(137, worker(0))
    await world.until(lambda: len(world.made["pods", worker(0)]) == 2, "a replacement")
    await world.running("2/2")
    kubelet.exit(0, worker(0), incarnation=2)
    await finish(world, kubelet)


@scenario("pod-deleted-by-hand")
async def _(world, kubelet):
    await world.create("pytorchjobs", job())
    await world.running("2/2")
    # It terminates for as long as the operator needs to see that: of a pod that goes while no
    # operator runs nothing is known.
    kubelet.lingering.add(worker(0))
    await world.delete("pods", worker(0))
    await world.condition("Restarting")
    kubelet.release()
    await world.until(lambda: len(world.made["pods", worker(0)]) == 2, "a replacement")
    await world.running("2/2")
    kubelet.exit(0, worker(0), incarnation=2)
    await finish(world, kubelet)


@scenario("fails-for-good")
async def _(world, kubelet):
    await world.create("pytorchjobs", job(restart="ExitCode", workers=2))
    await world.running("3/3")
    kubelet.exit(3, worker(1))
    await world.condition("Failed")


@scenario("backoff-limit")
async def _(world, kubelet):
    await world.create("pytorchjobs", job(backoffLimit=1, cleanPodPolicy="Running"))
    await world.running("2/2")
    kubelet.exit(1, worker(0))
    await world.until(lambda: len(world.made["pods", worker(0)]) == 2, "a retry")
    await world.running("2/2")
    kubelet.exit(1, worker(0), incarnation=2)
    await world.condition("Failed")


@scenario("suspend-and-resume")
async def _(world, kubelet):
    await world.create("pytorchjobs", job())
    await world.running("2/2")
    await edit(world, {"runPolicy": {"suspend": True}})
    await world.condition("Suspended")
    await world.until(
        lambda: not world.objects["pods"] and not world.objects["services"], "no children"
    )
    await edit(world, {"runPolicy": {"suspend": False}})
    await world.until(lambda: len(world.made["pods", MASTER]) == 2, "the Master again")
    await world.running("2/2")
    kubelet.exit(0, worker(0), incarnation=2)
    await finish(world, kubelet, incarnation=2)


@scenario("deleted-while-creating", racing=True)
async def _(world, _kubelet):
    await world.create("pytorchjobs", job(workers=8))
    await world.until(lambda: len(world.made["pods", worker(0)]) > 0, "a worker")
    await world.delete("pytorchjobs", "job")
    await world.until(lambda: not world.objects["pytorchjobs"], "no job")


@scenario("made-again-under-its-name", racing=True)
async def _(world, kubelet):
    await world.create("pytorchjobs", job())
    await world.running("2/2")
    await world.delete("pytorchjobs", "job")
    await world.create("pytorchjobs", job())
    await world.until(lambda: len(world.made["pods", MASTER]) == 2, "the Master again")
    await world.running("2/2")
    kubelet.exit(0, worker(0), incarnation=2)
    await finish(world, kubelet, incarnation=2)


@scenario("ttl")
async def _(world, kubelet):
    await world.create("pytorchjobs", job(ttlSecondsAfterFinished=1))
    await world.running("2/2")
    kubelet.exit(0, MASTER)
    await world.until(lambda: not world.objects["pytorchjobs"], "no job")


@scenario("deadline")
async def _(world, _kubelet):
    await world.create("pytorchjobs", job(activeDeadlineSeconds=3600))
    await world.running("2/2")
    start = world.objects["pytorchjobs"]["job"]["status"]["startTime"]
    passed = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(start)
    await edit(world, {"runPolicy": {"activeDeadlineSeconds": int(passed.total_seconds()) + 2}})
    await world.condition("Failed")


@scenario("scaled-up-and-down")
async def _(world, kubelet):
    async def scale(workers):
        await edit(world, {"pytorchReplicaSpecs": {"Worker": {"replicas": workers}}})

    await world.create("pytorchjobs", job())
    await world.running("2/2")
    await scale(3)
    await world.running("4/4")
    await scale(1)
    await gone(world, worker(1), worker(2))
    await world.running("2/2")
    await finish(world, kubelet, worker(0))


@scenario("quota")
async def _(world, kubelet):
    # The quota's status is the test's own: no controller manager runs here.
    async def grant(pods):
        await world.patch("resourcequotas", "quota", {"spec": {"hard": {"pods": pods}}})
        await world.patch("resourcequotas", "quota", {"status": {"hard": {"pods": pods}}}, "status")

    body = {"metadata": {"name": "quota"}, "spec": {"hard": {"pods": "1"}}}
    await world.create("resourcequotas", body)
    counts = {"hard": {"pods": "1"}, "used": {"pods": "0"}}
    await world.patch("resourcequotas", "quota", {"status": counts}, "status")
    await world.create("pytorchjobs", job())
    await world.condition("ReplicaFailure")
    await grant("100")
    await world.running("2/2")
    await finish(world, kubelet, worker(0))


@scenario("restart-scope-job")
async def _(world, kubelet):
    await world.create("pytorchjobs", job(workers=2, restartScope="Job"))
    await world.running("3/3")
    kubelet.exit(1, worker(1))
    names = (MASTER, worker(0), worker(1))
    await world.until(
        lambda: all(len(world.made["pods", name]) == 2 for name in names), "a second attempt"
    )
    await world.running("3/3")
    await finish(world, kubelet, worker(0), worker(1), incarnation=2)


@scenario("name-held")
async def _(world, kubelet):
    kubelet.held.add(worker(0))
    container = {"name": "other", "image": "example.com/other:1"}
    body = {"metadata": {"name": worker(0)}, "spec": {"containers": [container]}}
    await world.create("pods", body)
    await world.create("pytorchjobs", job())
    await world.condition("ReplicaFailure")
    await world.delete("pods", worker(0))
    kubelet.release()
    await world.running("2/2")
    kubelet.exit(0, worker(0), incarnation=2)
    await finish(world, kubelet)


@scenario("suspended-from-the-start")
async def _(world, kubelet):
    await world.create("pytorchjobs", job(suspend=True))
    await world.condition("Suspended")
    await edit(world, {"runPolicy": {"suspend": False}})
    await world.running("2/2")
    await finish(world, kubelet, worker(0))
