#pragma once

#include <string>
#include <vector>

#include "core/plan.h"

namespace runtime {

// Writes of one job whose answer was lost: they may have been applied. What they did is told when
// it shows, as if the answer had come, so that events and metrics do not depend on the network.
// Kept in memory only; not thread-safe.
class Unanswered {
 public:
  // What has shown.
  struct Shown {
    std::vector<core::Done> done;
    std::vector<core::Event> events;
    std::vector<core::Transition> transitions;
  };

  void Add(std::vector<core::Action> actions);

  // An answer to the same, asked again: nothing is left to find out.
  void StatusWritten();
  void Answered(bool created, core::Kind kind, const std::string& name);

  // What the snapshot shows of them; that is not kept any longer.
  Shown Take(const core::Snapshot& snapshot);
  // The same when the job itself is gone.
  Shown TakeGone();

 private:
  std::vector<core::Action> actions_;
};

}  // namespace runtime
