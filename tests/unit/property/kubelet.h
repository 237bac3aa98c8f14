#pragma once

#include <string>

#include "property/cluster.h"

namespace model {

// Scheduler, kubelet and node controller: they move pods on. `arg` picks the pod among those that
// the step applies to; each returns what it did, "" for nothing.
class Kubelet {
 public:
  Kubelet(Cluster* cluster, const TimePoint* clock) : cluster_(*cluster), clock_(*clock) {}

  std::string Schedule(int arg);
  std::string Start(int arg);
  // The container ends; restarted in place where the pod's restartPolicy says so.
  std::string Exit(int arg);
  std::string Recover(int arg);
  std::string FailOddly(int arg);
  std::string Vanish(int arg);
  std::string Wait(int arg);
  std::string Evict(int arg);
  std::string Refuse(int arg);
  std::string LoseNode(int arg);
  std::string NodeBack(int arg);
  // Every pod goes one step towards success; false when there was nothing to do.
  bool StepAll(bool may_succeed);

 private:
  template <class F>
  const core::Pod* Pick(int arg, F applies) const;
  bool Reachable(const core::Pod& pod) const;
  bool Ours(const core::Pod& pod) const { return pod.owner_kind == "PyTorchJob"; }
  TimePoint Second() const { return std::chrono::floor<seconds>(clock_); }
  void ExitWith(const std::string& name, int code);
  void Fail(const std::string& name, Cause cause, const std::string& reason,
            const std::string& disruption);

  Cluster& cluster_;
  const TimePoint& clock_;
};

}  // namespace model
