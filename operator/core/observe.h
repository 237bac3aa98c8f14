#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/plan.h"
#include "core/policy/restart.h"

namespace core {

// One wanted replica and what is there of it.
struct Replica {
  ReplicaType type = ReplicaType::kWorker;
  int index = 0;
  std::string name;
  const Pod* pod = nullptr;               // of this attempt and incarnation
  const Pod* stale = nullptr;             // of an earlier one, still holding the name
  const DepartedPod* departed = nullptr;  // gone, not replaced yet; of this incarnation
  const Holder* holder = nullptr;         // a foreign object under the name
  bool completed = false;                 // its success was seen
  std::optional<Verdict> verdict;         // of a pod in phase Failed that is not terminating

  bool Terminating() const { return pod != nullptr && pod->deletion.has_value(); }
  bool Runs() const { return pod != nullptr && pod->phase == PodPhase::kRunning; }
  // Lost to something else than the program's own end: deleted by hand, drained, on a lost node.
  bool Vanishing() const { return !completed && (Terminating() || (pod == nullptr && departed)); }
};

// The pods of a job sorted into what they are. Pointers are into the snapshot, which must outlive
// it.
struct Observation {
  std::vector<Replica> replicas;    // by rank
  std::vector<const Pod*> surplus;  // index out of range, or of a type no longer in the spec
  std::vector<const Pod*> stale;    // of an earlier attempt or incarnation
  std::map<ReplicaType, std::string> training_container;
  // Departed pods of an earlier attempt, whose end says when the next may start.
  std::vector<const DepartedPod*> stale_departed;

  bool AnyActive() const;  // a pod, of any kind, is pending or running
};

// `status` is the one about to be written: its attempt and start time say which pods are current.
Observation Observe(const Snapshot& snapshot, const JobStatus& status);

// Adds what is seen of success: a replica whose pod succeeded stays completed until scaled away.
void RecordCompleted(const JobSpec& spec, Observation* observation, JobStatus* status);

}  // namespace core
