#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/json.h"
#include "core/model.h"

namespace core {

inline constexpr char kApiVersion[] = "kubeflow.org/v1";
inline constexpr char kJobKind[] = "PyTorchJob";
inline constexpr char kPortName[] = "pytorchjob-port";
inline constexpr int kDefaultPort = 23456;
inline constexpr char kOperatorNameLabel[] = "training.kubeflow.org/operator-name";
inline constexpr char kOperatorName[] = "pytorchjob-controller";
inline constexpr char kJobNameLabel[] = "training.kubeflow.org/job-name";
inline constexpr char kReplicaTypeLabel[] = "training.kubeflow.org/replica-type";
inline constexpr char kReplicaIndexLabel[] = "training.kubeflow.org/replica-index";
inline constexpr char kAttemptLabel[] = "training.kubeflow.org/attempt";
inline constexpr char kReplacementAnnotation[] = "pytorch-operator.kubeflow.org/replacement";
inline constexpr char kIncarnationAnnotation[] = "pytorch-operator.kubeflow.org/incarnation";
inline constexpr char kInitContainerAnnotation[] = "pytorch-operator.kubeflow.org/init-container";

// Type and index of "<job>-master-<i>" or "<job>-worker-<i>"; none for any other name.
struct ReplicaName {
  ReplicaType type;
  int index;
};
std::optional<ReplicaName> ParsePodName(std::string_view job, std::string_view pod);

// Where the processes meet: the Master, or worker 0 when there is none.
ReplicaType RendezvousType(const JobSpec& spec);
// 0 for the Master; workers follow.
int Rank(const JobSpec& spec, ReplicaType type, int index);

// All labels of a pod or Service of this replica, those of v1 and the older ones.
Json ReplicaLabels(const Job& job, ReplicaType type, int index);
// What a Service selects: the four labels that training-operator's pods have too.
Json SelectorLabels(const std::string& job, ReplicaType type, int index);
// status.replicaStatuses.<Type>.selector, keys sorted.
std::string SelectorText(const std::string& job, ReplicaType type);

// At most `limit` bytes, cut at a UTF-8 character, with "…" where something was cut.
std::string Truncated(std::string text, size_t limit);

}  // namespace core
