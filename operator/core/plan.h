#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "core/model.h"

namespace core {

enum class Kind { kJob, kPod, kService, kPodGroup, kAutoscaler };
std::string_view Name(Kind kind);  // "Pod", "Service", …

struct Options {
  std::string init_container_image;  // "" = no init container in workers
  bool service_per_replica = false;
  std::string gang_scheduler;  // "", "volcano" or "scheduler-plugins"
  // How long after the end of its grace period a pod on a dead node is deleted by force; 0 = never.
  seconds stuck_pod_timeout{300};
  // The CRD lacks our own status fields: they are neither compared nor written.
  bool crd_outdated = false;
};

// A create that failed and has not succeeded since; kept by the runtime, forgotten with the job.
struct CreateError {
  Kind kind = Kind::kPod;
  std::string name;
  base::ErrorCode code = base::ErrorCode::kInternal;
  std::string message;  // the API server's words; for a taken name, who holds it
  TimePoint at{};
  int tries = 1;
};

// A pod of this job that is gone, is wanted and has no successor yet, as it was last seen. One that
// was scaled away, at whatever moment, is none.
struct DepartedPod {
  std::shared_ptr<const Pod> pod;
  TimePoint gone{};
};

// Another object (other owner UID) that the caches hold under a name that this job needs.
struct Holder {
  Kind kind = Kind::kPod;
  std::string name;
  std::string description;  // "Pod demo/mnist-master-0, controlled by PyTorchJob mnist (uid …)"
  bool terminating = false;
};

enum class NodeState { kHealthy, kGone, kNotReady, kOutOfService };

// Everything known of one job at one moment.
struct Snapshot {
  std::shared_ptr<const Job> job;
  std::vector<std::shared_ptr<const Pod>> pods;          // controller owner UID is the job's
  std::vector<std::shared_ptr<const Service>> services;  // likewise
  std::vector<DepartedPod> departed;
  std::vector<Holder> holders;
  std::vector<CreateError> create_errors;
  std::optional<PodGroup> pod_group;
  std::optional<Autoscaler> autoscaler;
  std::map<std::string, NodeState> nodes;   // answers to Plan::ask_nodes
  std::optional<TimePoint> status_written;  // when this process last wrote the status
};

struct Event {
  bool warning = false;
  std::string reason;
  std::string message;
  bool operator==(const Event&) const = default;
};

enum class Transition { kCreated, kSuccessful, kFailed, kRestarted };  // of the job, for metrics

// Merge patch of the subresource status, with resourceVersion. Its events and transitions happen
// only if the write succeeded.
struct WriteStatus {
  std::string patch;
  std::vector<Transition> transitions;
  std::vector<Event> events;
};
struct Create {
  Kind kind = Kind::kPod;
  std::string name;
  std::string body;
};
// NotFound counts as done. A conflict of the uid means that the object is another one: done too.
struct Delete {
  Kind kind = Kind::kPod;
  std::string name;
  std::string uid;
  std::optional<int> grace_seconds;
};
// Merge patch of the object itself (labels put back, a PodGroup's or autoscaler's spec).
struct Patch {
  Kind kind = Kind::kPod;
  std::string name;
  std::string body;
};
using Action = std::variant<WriteStatus, Create, Delete, Patch>;

// What to do now, in order. Each prefix is a legal state; a failed status write ends the pass, a
// failed create ends its kind (masters before workers) and is answered by a new Decide with
// Snapshot::create_errors.
struct Plan {
  std::vector<Action> actions;
  std::optional<TimePoint> look_again_at;  // if nothing happens before
  std::vector<std::string> ask_nodes;      // names of nodes whose state the next Decide needs
  std::string why;                         // one line for the log and `explain`

  bool Empty() const { return actions.empty(); }
};

// The one door: deterministic, no I/O. Applying the plan and deciding again gives an empty plan.
Plan Decide(const Snapshot& snapshot, TimePoint now, const Options& options);

// What happened to the children in one pass, as events; above ten of a kind they are summed up.
struct Done {
  bool created = true;  // else deleted
  Kind kind = Kind::kPod;
  std::string name;
};
std::vector<Event> ChildEvents(const std::vector<Done>& done);

}  // namespace core
