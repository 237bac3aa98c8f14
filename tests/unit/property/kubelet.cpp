#include "property/kubelet.h"

#include <array>
#include <vector>

namespace model {
namespace {

using core::Kind;
using core::Pod;
using core::PodPhase;

constexpr std::array<int, 10> kExitCodes = {0, 0, 0, 0, 1, 1, 137, 137, 143, 127};

bool Ended(const Pod& pod) {
  return pod.phase == PodPhase::kSucceeded || pod.phase == PodPhase::kFailed;
}

core::Container Training(const std::string& waiting_reason = "") {
  core::Container container;
  container.name = "pytorch";
  container.waiting_reason = waiting_reason;
  return container;
}

bool CrashLoops(const Pod& pod) {
  return !pod.containers.empty() && pod.containers[0].waiting_reason == "CrashLoopBackOff";
}

}  // namespace

bool Kubelet::Reachable(const Pod& pod) const { return !cluster_.nodes.contains(pod.node); }

template <class F>
const Pod* Kubelet::Pick(int arg, F applies) const {
  std::vector<const Pod*> fitting;
  for (const auto& [name, pod] : cluster_.pods) {
    if (Ours(*pod) && Reachable(*pod) && applies(*pod)) fitting.push_back(pod.get());
  }
  return fitting.empty() ? nullptr : fitting[arg % fitting.size()];
}

std::string Kubelet::Schedule(int arg) {
  const Pod* pod = Pick(arg, [](const Pod& p) {
    return p.phase == PodPhase::kPending && p.node.empty() && !p.deletion;
  });
  if (pod == nullptr) return "";
  std::string node = "n" + std::to_string(arg % 3);
  if (cluster_.nodes.contains(node)) node = "n3";
  cluster_.EditPod(pod->name, [&](Pod& p) {
    p.node = node;
    p.unschedulable.clear();
    p.started = Second();
    p.changed = Second();
  });
  return pod->name + " on " + node;
}

std::string Kubelet::Start(int arg) {
  const Pod* pod = Pick(arg, [](const Pod& p) {
    return p.phase == PodPhase::kPending && !p.node.empty() && !p.deletion;
  });
  if (pod == nullptr) return "";
  cluster_.EditPod(pod->name, [&](Pod& p) {
    p.phase = PodPhase::kRunning;
    p.ready = true;
    p.changed = Second();
    p.containers = {Training()};
  });
  return pod->name;
}

void Kubelet::ExitWith(const std::string& name, int code) {
  const Pod& pod = *cluster_.pods.at(name);
  PodFacts& facts = cluster_.facts.at(pod.uid);
  const core::Termination end{code, code == 0 ? "Completed" : "Error", "", Second()};
  const bool restarts = !pod.deletion && (facts.restart_policy == "Always" ||
                                          (facts.restart_policy == "OnFailure" && code != 0));
  if (!restarts && code != 0) {
    if (facts.cause == Cause::kNone) facts.cause = Cause::kExit;
    facts.exit_code = code;
  }
  cluster_.EditPod(name, [&](Pod& p) {
    core::Container& container = p.containers.at(0);
    p.ready = false;
    p.changed = Second();
    if (restarts) {
      ++container.restarts;
      container.last_terminated = end;
      container.waiting_reason = "CrashLoopBackOff";
      return;
    }
    container.waiting_reason.clear();
    container.terminated = end;
    p.phase = code == 0 ? PodPhase::kSucceeded : PodPhase::kFailed;
  });
}

std::string Kubelet::Exit(int arg) {
  const Pod* pod = Pick(arg, [](const Pod& p) {
    return p.phase == PodPhase::kRunning && !p.containers.empty() && !CrashLoops(p);
  });
  if (pod == nullptr) return "";
  const int code = kExitCodes[arg / 4 % kExitCodes.size()];
  const std::string name = pod->name;
  ExitWith(name, code);
  return name + " with " + std::to_string(code);
}

std::string Kubelet::Recover(int arg) {
  const Pod* pod = Pick(arg, [](const Pod& p) { return CrashLoops(p) && !p.deletion; });
  if (pod == nullptr) return "";
  cluster_.EditPod(pod->name, [](Pod& p) {
    p.containers[0].waiting_reason.clear();
    p.ready = true;
  });
  return pod->name;
}

void Kubelet::Fail(const std::string& name, Cause cause, const std::string& reason,
                   const std::string& disruption) {
  PodFacts& facts = cluster_.facts.at(cluster_.pods.at(name)->uid);
  facts.cause = cause;
  cluster_.EditPod(name, [&](Pod& p) {
    p.phase = PodPhase::kFailed;
    p.ready = false;
    p.reason = reason;
    p.disruption = disruption;
    p.changed = Second();
    for (core::Container& container : p.containers) container.waiting_reason.clear();
  });
}

std::string Kubelet::FailOddly(int arg) {
  const Pod* pod = Pick(arg, [](const Pod& p) { return !Ended(p) && !p.node.empty(); });
  if (pod == nullptr) return "";
  const std::string name = pod->name;
  Fail(name, pod->disruption.empty() ? Cause::kNoCode : Cause::kDisruption, "", pod->disruption);
  return name;
}

std::string Kubelet::Vanish(int arg) {
  const Pod* pod = Pick(arg, [](const Pod& p) { return p.deletion.has_value(); });
  if (pod == nullptr) return "";
  const std::string name = pod->name;
  if (pod->phase == PodPhase::kRunning && !pod->containers.empty() && arg % 2 == 1) {
    ExitWith(name, arg % 4 == 1 ? 0 : 143);
    return name + " ends before it goes";
  }
  cluster_.Remove(Kind::kPod, name);
  return name;
}

std::string Kubelet::Wait(int arg) {
  const Pod* pod = Pick(arg, [](const Pod& p) { return p.phase == PodPhase::kPending; });
  if (pod == nullptr) return "";
  cluster_.EditPod(pod->name, [&](Pod& p) {
    p.changed = Second();
    if (p.node.empty()) {
      p.unschedulable = "0/4 nodes are available";
    } else {
      p.containers = {Training("ErrImagePull")};
    }
  });
  return pod->name;
}

std::string Kubelet::Evict(int arg) {
  const Pod* pod = Pick(arg, [](const Pod& p) { return !Ended(p) && !p.node.empty(); });
  if (pod == nullptr) return "";
  const std::string name = pod->name;
  if (arg % 3 == 0) {  // by the API: deletion with the condition
    cluster_.facts.at(pod->uid).cause = Cause::kDisruption;
    cluster_.EditPod(name, [&](Pod& p) {
      p.disruption = "EvictionByEvictionAPI";
      if (!p.deletion) p.deletion = Second() + seconds{30};
    });
    return name + " by the API";
  }
  Fail(name, Cause::kDisruption, "Evicted", arg % 3 == 1 ? "TerminationByKubelet" : "");
  return name + " by the kubelet";
}

std::string Kubelet::Refuse(int arg) {
  const Pod* pod =
      Pick(arg, [](const Pod& p) { return p.phase == PodPhase::kPending && !p.node.empty(); });
  if (pod == nullptr) return "";
  const std::string name = pod->name;
  Fail(name, Cause::kDisruption, "OutOfcpu", "");
  return name;
}

std::string Kubelet::LoseNode(int arg) {
  const std::string node = "n" + std::to_string(arg % 3);
  static constexpr std::array kStates = {core::NodeState::kGone, core::NodeState::kNotReady,
                                         core::NodeState::kOutOfService};
  cluster_.nodes[node] = kStates[arg / 4 % 3];
  std::vector<std::string> names;
  for (const auto& [name, pod] : cluster_.pods) {
    if (Ours(*pod) && pod->node == node && !Ended(*pod)) names.push_back(name);
  }
  for (const std::string& name : names) {
    cluster_.facts.at(cluster_.pods.at(name)->uid).cause = Cause::kDisruption;
    cluster_.EditPod(name, [&](Pod& p) {
      p.ready = false;
      p.disruption = "DeletionByTaintManager";
      if (!p.deletion) p.deletion = Second() + seconds{30};
    });
  }
  return node;
}

std::string Kubelet::NodeBack(int arg) {
  if (cluster_.nodes.empty()) return "";
  auto it = std::next(cluster_.nodes.begin(), arg % cluster_.nodes.size());
  const std::string name = it->first;
  cluster_.nodes.erase(it);
  return name;
}

bool Kubelet::StepAll(bool may_succeed) {
  std::vector<std::string> names;
  for (const auto& [name, pod] : cluster_.pods) {
    if (Ours(*pod) && Reachable(*pod)) names.push_back(name);
  }
  bool moved = false;
  for (const std::string& name : names) {
    const Pod pod = *cluster_.pods.at(name);
    auto is_this = [&](const Pod& p) { return p.name == name; };
    if (pod.deletion) {
      cluster_.Remove(Kind::kPod, name);
    } else if (CrashLoops(pod)) {
      cluster_.EditPod(name, [](Pod& p) { p.containers[0].waiting_reason.clear(); });
    } else if (pod.phase == PodPhase::kPending && pod.node.empty()) {
      cluster_.EditPod(name, [&](Pod& p) {
        p.node = "n3";
        p.unschedulable.clear();
        p.started = Second();
      });
    } else if (pod.phase == PodPhase::kPending) {
      cluster_.EditPod(name, [&](Pod& p) {
        p.phase = PodPhase::kRunning;
        p.ready = true;
        p.containers = {Training()};
      });
    } else if (pod.phase == PodPhase::kRunning && may_succeed && Pick(0, is_this) != nullptr &&
               cluster_.facts.at(pod.uid).restart_policy != "Always") {
      ExitWith(name, 0);
    } else {
      continue;
    }
    moved = true;
  }
  return moved;
}

}  // namespace model
