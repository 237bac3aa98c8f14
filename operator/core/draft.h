#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/observe.h"
#include "core/plan.h"

namespace core {

// A plan in the making: the status to be written and the actions so far.
class Draft {
 public:
  Draft(const Snapshot& snapshot, TimePoint now, const Options& options);

  const Snapshot& snapshot;
  const Job& job;
  const TimePoint now;
  const Options& options;
  JobStatus status;  // starts as the one in the snapshot
  std::vector<Transition> transitions;
  std::vector<Event> events;

  const std::string& name() const { return job.key.name; }
  void LookAgain(TimePoint at);
  // Nothing for an object that is already terminating.
  void DeletePod(const Pod& pod, std::optional<int> grace_seconds = std::nullopt);
  void DeleteServices();  // all that the job owns
  void DeleteService(const Service& service);
  void DeleteJob();
  void CreatePod(const std::string& name, std::string body);
  void CreateService(const std::string& name, std::string body);
  void PatchPod(const std::string& name, std::string body);
  // An object of another kind that the job owns and that has its name: PodGroup, autoscaler.
  void CreateOwned(Kind kind, const std::string& api_version, const Json& spec);
  void PatchOwned(Kind kind, const std::string& name, std::string body);
  void DeleteOwned(Kind kind, const std::string& name, const std::string& uid);
  void AskNode(const std::string& node);
  void Because(const std::string& why);  // for Plan::why

  // Puts the conditions in order, the status write first, and gives the plan away.
  Plan Finish();

 private:
  bool OnlyCountsChanged() const;

  std::vector<Action> actions_;
  std::optional<TimePoint> look_again_at_;
  std::vector<std::string> ask_nodes_;
  std::string why_;
};

// The first status of a job: Created, with a warning for what its templates override.
void RecordCreated(Draft* draft);
// The job's end: the condition, completionTime and its event, in the same write as what led to it.
void End(Draft* draft, const char* type, const std::string& reason, const std::string& message);

}  // namespace core
