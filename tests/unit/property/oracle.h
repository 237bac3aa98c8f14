#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/plan.h"
#include "core/policy/restart.h"
#include "property/cluster.h"

namespace model {

// A rule of the contract that did not hold. Thrown, and caught where the history is run.
struct Violation {
  std::string what;
};
void Require(bool holds, const std::string& what);

// Knows the contract (docs: behaviour of the operator) and watches every decision, action and
// status write. It remembers what the operator has seen of each pod, over crashes of the operator,
// so that it knows what the counts must be.
class Oracle {
 public:
  explicit Oracle(const Cluster* cluster) : cluster_(*cluster) {}

  // Before an action is carried out. `status` is the last one that this plan wrote, else the
  // snapshot's.
  void OnAction(const core::Snapshot& snapshot, const core::JobStatus& status,
                const core::Action& action, TimePoint now);
  // The API server took a status write; `after` is the job with it.
  void OnStatus(const core::Snapshot& snapshot, const core::Job& after,
                const core::WriteStatus& write, TimePoint now);
  // Nothing is due, every event has been seen: all that the contract promises must be there, or a
  // timer must be set for it.
  void OnSettled(const core::Snapshot& snapshot, std::optional<TimePoint> timer,
                 TimePoint now) const;

 private:
  struct Counted {
    int restarts = 0;
    bool failed = false;
  };
  using Index = std::pair<core::ReplicaType, int>;
  // What the status of one job must say.
  struct Truth {
    std::map<std::string, Counted> counted;  // by pod uid
    int restart_count = 0;
    std::set<Index> completed;
    std::map<core::Transition, int> transitions;
  };

  void OnCreatePod(const core::Snapshot& snapshot, const core::JobStatus& status,
                   const core::Create& create);
  void OnDeletePod(const core::Snapshot& snapshot, const core::JobStatus& status,
                   const core::Delete& action, TimePoint now) const;
  // Takes note of what the operator sees in `snapshot` while the status becomes `after`.
  void Follow(const core::Snapshot& snapshot, const core::JobStatus& after, Truth* truth) const;
  core::Verdict VerdictOf(const core::Pod& pod, const core::JobSpec& spec) const;
  // Failures so far, as backoffLimit counts them.
  int Failures(const core::Snapshot& snapshot, const core::JobStatus& status,
               const Truth& truth) const;
  static bool Succeeded(const core::JobSpec& spec, const Truth& truth);
  const core::Pod* Fatal(const core::Snapshot& snapshot, const core::JobStatus& status) const;
  void CheckEnd(const core::Snapshot& snapshot, const core::Job& after, const Truth& truth,
                TimePoint now) const;
  void SettledActive(const core::Snapshot& snapshot, const Truth& truth,
                     std::optional<TimePoint> timer, TimePoint now) const;
  void SettledObstacles(const core::Snapshot& snapshot, const Truth& truth,
                        std::optional<TimePoint> timer) const;
  void SettledSuspended(const core::Snapshot& snapshot, bool counts_may_lag) const;
  void SettledFinished(const core::Snapshot& snapshot, std::optional<TimePoint> timer) const;

  const Cluster& cluster_;
  std::map<std::string, Truth> truths_;  // by job uid
};

// The rules that hold at every version of the object: order, exactly one true, what never changes.
void CheckConditions(const core::JobStatus& before, const core::JobStatus& after);

// Whether a pod belongs to the present attempt and incarnation and is wanted.
bool Current(const core::Pod& pod, const core::JobSpec& spec, const core::JobStatus& status);

}  // namespace model
