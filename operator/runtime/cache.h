#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/model.h"
#include "core/plan.h"
#include "runtime/store.h"
#include "runtime/work_queue.h"

namespace runtime {

// A job that a change concerns, and how soon it wants a look.
struct Touched {
  core::JobKey key;
  Priority priority = Priority::kNormal;
  bool operator==(const Touched&) const = default;
};

// An object that only a GET can tell about: it left the watch without having been seen ending (its
// labels may have been removed), or it is known to live outside the watch.
struct Probe {
  core::Kind kind = core::Kind::kPod;
  std::string name;
  std::string uid;
};

// What the watches tell of jobs and their children, indexed by owner and by name. Thread-safe; the
// objects handed out never change.
//
// `scope` is the namespace that a watch covers, "" for all. Objects older than what is held (by
// resourceVersion, same uid) are ignored, so that a GET may run ahead of a watch.
class Cache {
 public:
  explicit Cache(Clock clock);

  // From the watches. Return the jobs to look at.
  std::vector<Touched> Replace(const std::string& scope, std::vector<core::Job> jobs,
                               const std::string& resource_version);
  std::vector<Touched> Replace(const std::string& scope, std::vector<core::Pod> pods,
                               const std::string& resource_version);
  std::vector<Touched> Replace(const std::string& scope, std::vector<core::Service> services,
                               const std::string& resource_version);
  std::vector<Touched> Replace(const std::string& scope, std::vector<core::PodGroup> groups,
                               const std::string& resource_version);
  std::vector<Touched> Replace(const std::string& scope, std::vector<core::Autoscaler> scalers,
                               const std::string& resource_version);
  std::vector<Touched> Apply(const std::string& scope, core::Job job, bool deleted);
  std::vector<Touched> Apply(const std::string& scope, core::Pod pod, bool deleted);
  std::vector<Touched> Apply(const std::string& scope, core::Service service, bool deleted);
  std::vector<Touched> Apply(const std::string& scope, core::PodGroup group, bool deleted);
  std::vector<Touched> Apply(const std::string& scope, core::Autoscaler scaler, bool deleted);
  void Advance(core::Kind kind, const std::string& scope, const std::string& resource_version);

  // From GETs. An object that the watch does not hold is taken to live outside it, until the watch
  // brings it: View::probes asks for it at each look.
  void Learn(core::Job job);
  void Learn(core::Pod pod);
  void Learn(core::Service service);
  // A GET found that this object is no more (or that the name holds another).
  void LearnGone(const core::JobKey& job, const Probe& probe);
  // The API server has accepted our delete: its vanishing needs no GET.
  void NoteDeleted(const core::JobKey& job, core::Kind kind, const std::string& name,
                   const std::string& uid);

  // Whether the watch of `kind` has passed `resource_version` in this namespace.
  bool HasSeen(core::Kind kind, const std::string& ns, const std::string& resource_version) const;

  struct View {
    core::Snapshot snapshot;     // job is null when there is none
    std::vector<Probe> probes;   // to be answered by Learn or LearnGone before a decision
    bool outside_watch = false;  // some object of the snapshot changes without the watch's notice
  };
  View Look(const core::JobKey& key) const;

  std::vector<core::JobKey> Jobs() const;

  // Called, with the mutex held, with each job that went. Set before the watches start.
  void OnJobGone(std::function<void(const core::Job&)> callback) {
    on_job_gone_ = std::move(callback);
  }

 private:
  struct StoredJob : core::Job {  // with the names that Store asks for
    std::string ns, name, owner_uid;
  };
  struct Departure {
    core::DepartedPod departed;
    bool certain = false;  // seen ending, or a GET has said so
  };

  static StoredJob Stored(core::Job job);
  // Follow one change of a store; append the jobs that it concerns.
  void Changed(const Change<StoredJob>& change, bool listed, std::vector<Touched>& touched);
  void Changed(const Change<core::Pod>& change, bool listed, std::vector<Touched>& touched);
  template <class T>  // of any other kind
  void Changed(const Change<T>& change, bool listed, std::vector<Touched>& touched);
  template <class T>
  std::vector<Touched> ReplaceIn(Store<T>& store, core::Kind kind, const std::string& scope,
                                 std::vector<T> objects, const std::string& resource_version);
  template <class T>
  std::vector<Touched> ApplyTo(Store<T>& store, core::Kind kind, const std::string& scope, T object,
                               bool deleted);
  template <class T>
  void LearnInto(Store<T>& store, T object);
  // The owner's job, and a job that may wait for this object's name.
  template <class T>
  void TouchJobsOf(const T& object, Priority priority, std::vector<Touched>& touched) const;
  template <class T>
  static bool IsNews(const Store<T>& store, const T& object);
  void MarkGone(const core::JobKey& job, const std::string& pod, const std::string& uid);
  std::shared_ptr<const StoredJob> LiveJob(const std::string& uid) const;
  void AddHolders(const StoredJob& job, core::Snapshot& snapshot) const;

  const Clock clock_;
  std::function<void(const core::Job&)> on_job_gone_;

  mutable std::mutex mutex_;
  // All below are guarded by mutex_.
  Store<StoredJob> jobs_;
  Store<core::Pod> pods_;
  Store<core::Service> services_;
  Store<core::PodGroup> pod_groups_;
  Store<core::Autoscaler> autoscalers_;
  std::map<core::Kind, Progress> progress_;
  std::unordered_map<std::string, core::JobKey> job_by_uid_;
  // Of live, unfinished jobs: job uid -> pod name -> how it was last seen.
  std::unordered_map<std::string, std::map<std::string, Departure>> departed_;
  std::set<std::string> outside_watch_;  // uids of objects that only a GET has seen
  std::set<std::string> deleted_by_us_;  // uids, until they vanish
};

}  // namespace runtime
