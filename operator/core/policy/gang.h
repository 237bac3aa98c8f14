#pragma once

#include <string>
#include <vector>

#include "core/draft.h"
#include "core/json.h"

namespace core {

// Gang scheduling: a PodGroup named like the job, for volcano (scheduling.volcano.sh/v1beta1) or,
// with any other --gang-scheduler-name, for scheduler-plugins' coscheduling
// (scheduling.x-k8s.io/v1alpha1).
bool IsVolcano(const Options& options);

// Labels, annotations and schedulerName that make a pod a member. A scheduler that the template
// names stays.
void JoinGang(const Job& job, const Options& options, ReplicaType type, Json* metadata, Json* spec);
// A template that names another scheduler than the gang's.
std::vector<Event> GangWarnings(const Job& job, const Options& options);

// The spec that the PodGroup should have: minMember, minResources (given, or the sum of what the
// first minMember pods by rank request), queue, priorityClassName, scheduleTimeoutSeconds.
Json PodGroupSpec(const Job& job, const Options& options);

// Makes the PodGroup or brings it up to date. True when pods may be created: with volcano only once
// the group has been admitted.
bool WantPodGroup(Draft* draft);
void DropPodGroup(Draft* draft);

}  // namespace core
