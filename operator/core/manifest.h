#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "core/plan.h"

namespace core {

// Bodies of the children of one job; the rendezvous port and the parsed templates are worked out
// once. The job must outlive it.
class Manifests {
 public:
  Manifests(const Job& job, const Options& options);

  // `replacement` is the pod's number in a row of replacements, 0 for a first pod.
  std::string Pod(ReplicaType type, int index, int replacement) const;
  // The headless Service in front of one replica.
  std::string Service(ReplicaType type, int index) const;
  // What of the templates is overridden, one Warning event for each kind of thing.
  std::vector<Event> Warnings() const;

 private:
  bool WantsInitContainer(ReplicaType type, int index) const;

  const Job& job_;
  const Options& options_;
  int port_;
  std::map<ReplicaType, Json> templates_;
};

// metadata of an object that the job owns as its controller.
Json ChildMetadata(const Job& job, const std::string& name, Json labels);

// Whether the job has a Service for each replica (else one, for the rendezvous host).
bool ServicePerReplica(const Job& job, const Options& options);

// The labels of a pod put back, as a merge patch.
std::string LabelPatch(const Job& job, ReplicaType type, int index);

}  // namespace core
