#pragma once

#include <optional>

#include "core/draft.h"

namespace core {

// Failed and disrupted replicas of a running job: counts them (each once, by uid), deletes those
// whose delay is over. With restartScope Job it starts a new attempt instead, after which `seen`
// must be observed again: returns true then.
bool Replace(Draft* draft, const Observation& seen);

// Deletes what is left of earlier attempts and incarnations; with restartScope Job a failed pod
// stays for its logs until the new attempt may start.
void DeleteStale(Draft* draft, const Observation& seen);

// When a replica that has no pod may get one, and the number of that pod in a row of replacements.
struct Turn {
  TimePoint at{};  // the past when at once
  int replacement = 0;
};
Turn NextTurn(const Draft& draft, const Observation& seen, const Replica& replica);

// Running and Restarting as the pods say.
void UpdateProgress(Draft* draft, const Observation& seen);

// Pods that do not go: their grace period and stuck_pod_timeout have passed and their node is dead.
void DeleteStuck(Draft* draft);

}  // namespace core
