#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/json.h"
#include "core/model.h"
#include "core/plan.h"
#include "property/history.h"

namespace model {

using core::seconds;
using core::TimePoint;

inline constexpr char kNamespace[] = "demo";
inline constexpr char kJobName[] = "mnist";

// What really ended a pod; the model's own knowledge, against which the operator's verdict is held.
enum class Cause { kNone, kExit, kNoCode, kDisruption };

struct PodFacts {
  std::string restart_policy;  // spec.restartPolicy of the pod
  Cause cause = Cause::kNone;
  int exit_code = 0;
};

// One event of a watch. `object` is the object, or its last state when `gone`.
template <class T>
struct Change {
  uint64_t revision = 0;
  std::shared_ptr<const T> object;
  bool gone = false;
};

// The API server with one job and the objects around it. Every write that changes something takes
// the next resourceVersion and appends to the log of its kind, which is what watches see.
// Single-threaded; time is read through `clock`, which must outlive it.
class Cluster {
 public:
  Cluster(const Setup& setup, const TimePoint* clock);

  // What the operator may ask for. The value is the resourceVersion of the object after the write.
  base::Result<uint64_t> PatchStatus(const std::string& patch);
  base::Result<uint64_t> Create(core::Kind kind, const std::string& body);
  base::Result<uint64_t> Delete(core::Kind kind, const std::string& name, const std::string& uid,
                                std::optional<int> grace_seconds);
  base::Result<uint64_t> RestoreLabels(const std::string& pod);

  // Users and controllers.
  void CreateJob();
  void DeleteJob();
  void TouchJob();
  // Changes `spec`; a new generation if that changed anything.
  template <class F>
  void EditSpec(F edit);
  bool CollectGarbage();  // one round of it; false when there is none
  void CreateForeign(core::Kind kind, const std::string& name, bool labelled);
  bool RemoveForeign();
  template <class F>
  void EditPod(const std::string& name, F edit);
  void Remove(core::Kind kind, const std::string& name);  // at once

  std::shared_ptr<const core::Job> job;  // null while there is none
  std::map<std::string, std::shared_ptr<const core::Pod>> pods;
  std::map<std::string, std::shared_ptr<const core::Service>> services;
  std::map<std::string, PodFacts> facts;         // by uid, also of pods that are gone
  std::map<std::string, core::NodeState> nodes;  // those that are not healthy
  bool quota = false;                            // refuses new pods
  const bool service_per_replica;                // the operator runs with that flag

  std::vector<Change<core::Job>> job_log;
  std::vector<Change<core::Pod>> pod_log;
  std::vector<Change<core::Service>> service_log;

  // An object outside the operator's watch (no labels).
  static bool Hidden(const std::string& owner_kind) { return owner_kind == "Hidden"; }

 private:
  core::Json NewSpec() const;
  void StoreJob();
  void StorePod(core::Pod pod);
  TimePoint Second() const { return std::chrono::floor<seconds>(*clock_); }

  const Setup setup_;
  const TimePoint* const clock_;
  uint64_t revision_ = 100;
  int next_uid_ = 1;
  core::Json document_;  // the job as stored
};

template <class F>
void Cluster::EditSpec(F edit) {
  if (job == nullptr) return;
  core::Json before = document_["spec"];
  edit(document_["spec"]);
  if (document_["spec"] == before) return;
  document_["metadata"]["generation"] = job->generation + 1;
  StoreJob();
}

template <class F>
void Cluster::EditPod(const std::string& name, F edit) {
  core::Pod pod = *pods.at(name);
  edit(pod);
  StorePod(std::move(pod));
}

}  // namespace model
