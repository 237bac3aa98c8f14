#include "runtime/cache.h"

#include <algorithm>
#include <utility>

#include "runtime/holder.h"

namespace runtime {
namespace {

// "mnist" of "mnist-worker-12" and "mnist-master-0"; "" of any other name.
std::string JobOfName(const std::string& name) {
  const auto digits = name.find_last_not_of("0123456789");
  if (digits == std::string::npos || digits + 1 == name.size() || name[digits] != '-') return "";
  const std::string_view stem = std::string_view(name).substr(0, digits);
  for (core::ReplicaType type : {core::ReplicaType::kMaster, core::ReplicaType::kWorker}) {
    std::string suffix = "-";
    suffix += core::LowerName(type);
    if (stem.size() > suffix.size() && stem.ends_with(suffix)) {
      return std::string(stem.substr(0, stem.size() - suffix.size()));
    }
  }
  return "";
}

bool SeenEnding(const core::Pod& pod) {
  return pod.deletion || pod.phase == core::PodPhase::kSucceeded ||
         pod.phase == core::PodPhase::kFailed;
}

bool Terminating(const core::Pod& pod) { return pod.deletion.has_value(); }
bool Terminating(const core::Service& service) { return service.deleting; }

// A list of thousands of objects touches each job many times.
void Unique(std::vector<Touched>& touched) {
  std::sort(touched.begin(), touched.end(), [](const Touched& a, const Touched& b) {
    return std::tie(a.key, a.priority) < std::tie(b.key, b.priority);
  });
  touched.erase(std::unique(touched.begin(), touched.end(),
                            [](const Touched& a, const Touched& b) { return a.key == b.key; }),
                touched.end());
}

}  // namespace

Cache::Cache(Clock clock) : clock_(std::move(clock)) {}

Cache::StoredJob Cache::Stored(core::Job job) {
  StoredJob stored;
  stored.ns = job.key.ns;
  stored.name = job.key.name;
  static_cast<core::Job&>(stored) = std::move(job);
  return stored;
}

template <class T>
bool Cache::IsNews(const Store<T>& store, const T& object) {
  const auto held = store.Find(object.ns, object.name);
  return !held || held->uid != object.uid ||
         Revision(object.resource_version) >= Revision(held->resource_version);
}

std::shared_ptr<const Cache::StoredJob> Cache::LiveJob(const std::string& uid) const {
  auto it = job_by_uid_.find(uid);
  if (it == job_by_uid_.end()) return nullptr;
  auto job = jobs_.Find(it->second.ns, it->second.name);
  return job && job->uid == uid && !job->deleting && !job->status.Finished() ? job : nullptr;
}

template <class T>
void Cache::TouchJobsOf(const T& object, Priority priority, std::vector<Touched>& touched) const {
  if (auto it = job_by_uid_.find(object.owner_uid); it != job_by_uid_.end()) {
    touched.push_back({it->second, priority});
  }
  for (const std::string& name : {object.job_label, JobOfName(object.name)}) {
    if (!name.empty() && jobs_.Find(object.ns, name)) {
      touched.push_back({{object.ns, name}, priority});
    }
  }
}

void Cache::Changed(const Change<StoredJob>& change, bool listed, std::vector<Touched>& touched) {
  const auto& [before, after] = change;
  const bool same = before && after && before->uid == after->uid;
  if (before && !same) {
    job_by_uid_.erase(before->uid);
    departed_.erase(before->uid);
    if (on_job_gone_) on_job_gone_(*before);
  }
  if (after) {
    job_by_uid_[after->uid] = after->key;
    if (after->deleting || after->status.Finished()) departed_.erase(after->uid);
    // A replica that is scaled away and back starts anew.
    if (auto it = departed_.find(after->uid); it != departed_.end()) {
      std::erase_if(it->second, [&](const auto& item) {
        const core::Pod& pod = *item.second.departed.pod;
        return pod.index >= after->spec.Replicas(pod.type);
      });
      if (it->second.empty()) departed_.erase(it);
    }
  }
  const bool by_user =
      !same || before->generation != after->generation || before->deleting != after->deleting;
  touched.push_back({after ? after->key : before->key, listed    ? Priority::kBacklog
                                                       : by_user ? Priority::kUrgent
                                                                 : Priority::kNormal});
}

void Cache::Changed(const Change<core::Pod>& change, bool listed, std::vector<Touched>& touched) {
  const auto& [before, after] = change;
  const Priority priority = listed ? Priority::kBacklog : Priority::kNormal;
  if (before && (!after || after->uid != before->uid)) {
    outside_watch_.erase(before->uid);
    const bool ours = deleted_by_us_.erase(before->uid) > 0;
    const auto job = LiveJob(before->owner_uid);
    if (job && before->index < job->spec.Replicas(before->type)) {
      departed_[before->owner_uid][before->name] = {{before, clock_()},
                                                    after || ours || SeenEnding(*before)};
    }
    TouchJobsOf(*before, priority, touched);
  }
  if (after) {
    // A successor, or the pod itself that has come back.
    if (auto it = departed_.find(after->owner_uid); it != departed_.end()) {
      it->second.erase(after->name);
      if (it->second.empty()) departed_.erase(it);
    }
    TouchJobsOf(*after, priority, touched);
  }
}

template <class T>
void Cache::Changed(const Change<T>& change, bool listed, std::vector<Touched>& touched) {
  const Priority priority = listed ? Priority::kBacklog : Priority::kNormal;
  if (change.before && (!change.after || change.after->uid != change.before->uid)) {
    outside_watch_.erase(change.before->uid);
    TouchJobsOf(*change.before, priority, touched);
  }
  if (change.after) TouchJobsOf(*change.after, priority, touched);
}

template <class T>
std::vector<Touched> Cache::ReplaceIn(Store<T>& store, core::Kind kind, const std::string& scope,
                                      std::vector<T> objects, const std::string& resource_version) {
  std::vector<Touched> touched;
  std::lock_guard lock(mutex_);
  progress_[kind].Restart(scope, resource_version);
  for (const T& object : objects) outside_watch_.erase(object.uid);
  for (const Change<T>& change : store.Replace(scope, std::move(objects))) {
    Changed(change, true, touched);
  }
  Unique(touched);
  return touched;
}

template <class T>
std::vector<Touched> Cache::ApplyTo(Store<T>& store, core::Kind kind, const std::string& scope,
                                    T object, bool deleted) {
  std::vector<Touched> touched;
  std::lock_guard lock(mutex_);
  progress_[kind].Advance(scope, object.resource_version);
  const auto held = store.Find(object.ns, object.name);
  if (deleted) {
    if (held && held->uid == object.uid) {
      store.Erase(object.ns, object.name);
      // As it was at its end, which may say more than what was held.
      Changed(Change<T>{std::make_shared<const T>(std::move(object)), nullptr}, false, touched);
    }
  } else {
    outside_watch_.erase(object.uid);
    if (IsNews(store, object)) {
      Changed(store.Put(std::move(object)), false, touched);
    } else {
      // Nothing new, but a look may have waited for the watch to come as far.
      Changed(Change<T>{held, held}, false, touched);
    }
  }
  Unique(touched);
  return touched;
}

template <class T>
void Cache::LearnInto(Store<T>& store, T object) {
  std::vector<Touched> ignored;
  std::lock_guard lock(mutex_);
  if (!IsNews(store, object)) return;
  Change<T> change = store.Put(std::move(object));
  if (!change.before || change.before->uid != change.after->uid) {
    outside_watch_.insert(change.after->uid);
  }
  Changed(change, false, ignored);
}

std::vector<Touched> Cache::Replace(const std::string& scope, std::vector<core::Job> jobs,
                                    const std::string& resource_version) {
  std::vector<StoredJob> stored;
  stored.reserve(jobs.size());
  for (core::Job& job : jobs) stored.push_back(Stored(std::move(job)));
  return ReplaceIn(jobs_, core::Kind::kJob, scope, std::move(stored), resource_version);
}

std::vector<Touched> Cache::Replace(const std::string& scope, std::vector<core::Pod> pods,
                                    const std::string& resource_version) {
  return ReplaceIn(pods_, core::Kind::kPod, scope, std::move(pods), resource_version);
}

std::vector<Touched> Cache::Replace(const std::string& scope, std::vector<core::Service> services,
                                    const std::string& resource_version) {
  return ReplaceIn(services_, core::Kind::kService, scope, std::move(services), resource_version);
}

std::vector<Touched> Cache::Replace(const std::string& scope, std::vector<core::PodGroup> groups,
                                    const std::string& resource_version) {
  return ReplaceIn(pod_groups_, core::Kind::kPodGroup, scope, std::move(groups), resource_version);
}

std::vector<Touched> Cache::Replace(const std::string& scope, std::vector<core::Autoscaler> scalers,
                                    const std::string& resource_version) {
  return ReplaceIn(autoscalers_, core::Kind::kAutoscaler, scope, std::move(scalers),
                   resource_version);
}

std::vector<Touched> Cache::Apply(const std::string& scope, core::Job job, bool deleted) {
  return ApplyTo(jobs_, core::Kind::kJob, scope, Stored(std::move(job)), deleted);
}

std::vector<Touched> Cache::Apply(const std::string& scope, core::Pod pod, bool deleted) {
  return ApplyTo(pods_, core::Kind::kPod, scope, std::move(pod), deleted);
}

std::vector<Touched> Cache::Apply(const std::string& scope, core::Service service, bool deleted) {
  return ApplyTo(services_, core::Kind::kService, scope, std::move(service), deleted);
}

std::vector<Touched> Cache::Apply(const std::string& scope, core::PodGroup group, bool deleted) {
  return ApplyTo(pod_groups_, core::Kind::kPodGroup, scope, std::move(group), deleted);
}

std::vector<Touched> Cache::Apply(const std::string& scope, core::Autoscaler scaler, bool deleted) {
  return ApplyTo(autoscalers_, core::Kind::kAutoscaler, scope, std::move(scaler), deleted);
}

void Cache::Advance(core::Kind kind, const std::string& scope,
                    const std::string& resource_version) {
  std::lock_guard lock(mutex_);
  progress_[kind].Advance(scope, resource_version);
}

void Cache::Learn(core::Job job) {
  StoredJob stored = Stored(std::move(job));
  std::vector<Touched> ignored;
  std::lock_guard lock(mutex_);
  const bool held = jobs_.Find(stored.ns, stored.name) != nullptr;
  const uint64_t seen = progress_[core::Kind::kJob].Of(stored.ns);
  // Jobs are watched without a selector, so what the watch has passed and does not hold is gone.
  if (!IsNews(jobs_, stored) || (!held && Revision(stored.resource_version) <= seen)) return;
  Changed(jobs_.Put(std::move(stored)), false, ignored);
}

void Cache::Learn(core::Pod pod) { LearnInto(pods_, std::move(pod)); }
void Cache::Learn(core::Service service) { LearnInto(services_, std::move(service)); }

void Cache::LearnGone(const core::JobKey& job, const Probe& probe) {
  std::vector<Touched> ignored;
  std::lock_guard lock(mutex_);
  if (probe.kind == core::Kind::kService) {
    auto held = services_.Find(job.ns, probe.name);
    if (!held || held->uid != probe.uid) return;
    services_.Erase(job.ns, probe.name);
    Changed(Change<core::Service>{std::move(held), nullptr}, false, ignored);
    return;
  }
  auto held = pods_.Find(job.ns, probe.name);
  if (held && held->uid == probe.uid) {
    pods_.Erase(job.ns, probe.name);
    Changed(Change<core::Pod>{std::move(held), nullptr}, false, ignored);
  }
  MarkGone(job, probe.name, probe.uid);
}

void Cache::MarkGone(const core::JobKey& job, const std::string& pod, const std::string& uid) {
  const auto owner = jobs_.Find(job.ns, job.name);
  if (!owner) return;
  auto it = departed_.find(owner->uid);
  if (it == departed_.end()) return;
  auto departure = it->second.find(pod);
  if (departure != it->second.end() && departure->second.departed.pod->uid == uid) {
    departure->second.certain = true;
  }
}

void Cache::NoteDeleted(const core::JobKey& job, core::Kind kind, const std::string& name,
                        const std::string& uid) {
  if (kind != core::Kind::kPod) return;
  std::lock_guard lock(mutex_);
  const auto held = pods_.Find(job.ns, name);
  if (held && held->uid == uid) {
    deleted_by_us_.insert(uid);
  } else {
    MarkGone(job, name, uid);
  }
}

bool Cache::HasSeen(core::Kind kind, const std::string& ns,
                    const std::string& resource_version) const {
  std::lock_guard lock(mutex_);
  auto it = progress_.find(kind);
  const uint64_t seen = it == progress_.end() ? 0 : it->second.Of(ns);
  return Revision(resource_version) <= seen;
}

void Cache::AddHolders(const StoredJob& job, core::Snapshot& snapshot) const {
  auto add = [&](core::Kind kind, const auto& store, core::ReplicaType type, int replicas) {
    std::string prefix = job.name + "-";
    prefix.append(core::LowerName(type)).append("-");
    for (const auto& object : store.WithPrefix(job.ns, prefix)) {
      if (object->owner_uid == job.uid) continue;
      const uint64_t index = Revision(std::string_view(object->name).substr(prefix.size()));
      if (index >= static_cast<uint64_t>(std::max(replicas, 0)) ||
          object->name != core::PodName(job.name, type, static_cast<int>(index))) {
        continue;
      }
      snapshot.holders.push_back(
          {kind, object->name, DescribeHolder(kind, *object), Terminating(*object)});
    }
  };
  for (const auto& [type, spec] : job.spec.replicas) {
    add(core::Kind::kPod, pods_, type, spec.replicas);
    add(core::Kind::kService, services_, type, spec.replicas);
  }
}

Cache::View Cache::Look(const core::JobKey& key) const {
  View view;
  std::lock_guard lock(mutex_);
  const auto job = jobs_.Find(key.ns, key.name);
  if (!job) return view;
  view.snapshot.job = job;
  view.snapshot.pods = pods_.OwnedBy(job->uid);
  view.snapshot.services = services_.OwnedBy(job->uid);
  for (const auto& group : pod_groups_.OwnedBy(job->uid)) view.snapshot.pod_group = *group;
  for (const auto& scaler : autoscalers_.OwnedBy(job->uid)) view.snapshot.autoscaler = *scaler;
  for (const auto& pod : view.snapshot.pods) {
    if (outside_watch_.contains(pod->uid)) {
      view.probes.push_back({core::Kind::kPod, pod->name, pod->uid});
    }
  }
  for (const auto& service : view.snapshot.services) {
    if (outside_watch_.contains(service->uid)) {
      view.probes.push_back({core::Kind::kService, service->name, service->uid});
    }
  }
  view.outside_watch = !view.probes.empty();
  if (auto it = departed_.find(job->uid); it != departed_.end()) {
    for (const auto& [name, departure] : it->second) {
      view.snapshot.departed.push_back(departure.departed);
      if (!departure.certain) {
        view.probes.push_back({core::Kind::kPod, name, departure.departed.pod->uid});
      }
    }
  }
  if (!job->deleting && !job->status.Finished()) AddHolders(*job, view.snapshot);
  return view;
}

std::vector<core::JobKey> Cache::Jobs() const {
  std::lock_guard lock(mutex_);
  std::vector<core::JobKey> keys;
  for (const auto& [uid, key] : job_by_uid_) keys.push_back(key);
  return keys;
}

}  // namespace runtime
