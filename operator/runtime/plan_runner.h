#pragma once

#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/plan.h"
#include "runtime/api.h"
#include "runtime/cache.h"

namespace runtime {

// What came of one plan.
struct Outcome {
  enum class End {
    kDone,      // every action was tried; failed creates are in `refused`
    kConflict,  // the status was written on top of another version: the pass is void
    kFailed,    // `error` ended the pass; what was done before it stands
    kStopped,   // the process ends, or leads no more
  };
  End end = End::kDone;
  base::Error error;
  std::string at;  // what was being done when `error` came

  std::vector<core::Done> done;  // children that this plan really made or deleted
  std::vector<core::Event> events;
  std::vector<core::Transition> transitions;
  std::vector<core::CreateError> refused;
  std::vector<core::Action> unanswered;                     // may have been applied
  std::vector<std::pair<core::Kind, std::string>> created;  // also those that were there already
  std::map<core::Kind, std::string> written;                // the newest resourceVersion a kind
  bool wrote_status = false;
  bool found = false;  // a pod of the job that the cache had not: decide again
  // Whether the server kept our own status fields, if any were written.
  std::optional<bool> own_fields_kept;
};

// Runs a plan's actions in order. Keeps no state between plans; thread-safe.
class PlanRunner {
 public:
  // All outlive this object. `width`: how many requests of one plan may be in flight.
  PlanRunner(Api& api, Cache& cache, Clock clock, int width);

  // `snapshot` is brought up to date with the replies, so that a second Decide in the same pass
  // sees what the first one did. After `stop` nothing new is begun.
  Outcome Run(const core::Plan& plan, core::Snapshot& snapshot, std::stop_token stop) const;

 private:
  class Pass;

  Api& api_;
  Cache& cache_;
  const Clock clock_;
  const int width_;
};

// Whether an error is the network's or the server's passing state, and no answer to the request.
bool IsTransient(base::ErrorCode code);
// Whether a write that ended so may have been applied all the same.
bool MayBeApplied(base::ErrorCode code);

}  // namespace runtime
