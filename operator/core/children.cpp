#include "core/children.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/conditions.h"
#include "core/counts.h"
#include "core/manifest.h"
#include "core/names.h"
#include "core/policy/autoscale.h"
#include "core/policy/gang.h"
#include "core/policy/replace.h"

namespace core {
namespace {

constexpr char kFailedCreatePod[] = "FailedCreatePod";
constexpr char kFailedCreateService[] = "FailedCreateService";
constexpr size_t kMaxMessage = 1024;

// The first thing that keeps a child from being made.
struct Obstacle {
  std::string reason;
  std::string message;
};

class Children {
 public:
  Children(Draft* draft, const Observation& seen)
      : draft_(draft), seen_(seen), job_(WithNewStatus(*draft)), manifests_(job_, draft->options) {
    for (const CreateError& error : draft->snapshot.create_errors) {
      errors_[error.kind][error.name] = &error;
    }
  }

  void Want() {
    const bool services_ready = WantServices();
    const bool admitted =
        !Refused(Kind::kPodGroup, !draft_->snapshot.pod_group) && WantPodGroup(draft_);
    if (services_ready && admitted) {
      WantPods();
    } else {
      missing_ = true;
    }
    if (!Refused(Kind::kAutoscaler, !draft_->snapshot.autoscaler)) WantAutoscaler(draft_);
    UpdateCondition();
  }

 private:
  // Pods carry the attempt and start time that are about to be written.
  static Job WithNewStatus(const Draft& draft) {
    Job job = draft.job;
    job.status = draft.status;
    return job;
  }

  void Obstruct(const std::string& reason, const std::string& message) {
    if (!obstacle_) obstacle_ = Obstacle{reason, Truncated(message, kMaxMessage)};
  }

  static std::string Taken(const char* plural, const Holder& holder) {
    return std::string(plural) + " \"" + holder.name + "\" already exists: held by " +
           holder.description + (holder.terminating ? ", which is terminating" : "");
  }

  // True while a failed create is not to be tried again yet.
  bool HeldBack(const CreateError& error) {
    const TimePoint at = error.at + CreateRetryDelay(error.code, error.tries);
    if (draft_->now >= at) return false;
    draft_->LookAgain(at);
    return true;
  }

  // Whether the one object of this kind is missing and could not be made a moment ago.
  bool Refused(Kind kind, bool missing) {
    auto it = errors_[kind].find(job_.key.name);
    if (it == errors_[kind].end() || !missing) return false;
    Obstruct("FailedCreate" + std::string(Name(kind)), it->second->message);
    return HeldBack(*it->second);
  }

  // True when the Service that pods need is there or about to be.
  bool WantServices() {
    const bool each = ServicePerReplica(job_, draft_->options);
    std::unordered_map<std::string, const Service*> existing;
    for (const auto& service : draft_->snapshot.services) {
      existing[service->name] = service.get();
      auto replica = ParsePodName(job_.key.name, service->name);
      if (replica && replica->index >= job_.spec.Replicas(replica->type)) {
        draft_->DeleteService(*service);
      }
    }
    bool ready = true;
    for (const Replica& replica : seen_.replicas) {
      const bool rendezvous = replica.index == 0 && replica.type == RendezvousType(job_.spec);
      if (!each && !rendezvous) continue;
      if (!WantService(replica, existing)) ready = false;
    }
    return ready;
  }

  bool WantService(const Replica& replica,
                   const std::unordered_map<std::string, const Service*>& existing) {
    if (auto it = existing.find(replica.name); it != existing.end()) {
      return !it->second->deleting;  // else its going wakes the job
    }
    missing_ = true;
    for (const Holder& holder : draft_->snapshot.holders) {
      if (holder.kind != Kind::kService || holder.name != replica.name) continue;
      Obstruct(kFailedCreateService, Taken("services", holder));
      return false;
    }
    if (auto it = errors_[Kind::kService].find(replica.name); it != errors_[Kind::kService].end()) {
      Obstruct(kFailedCreateService, it->second->message);
      if (HeldBack(*it->second)) return false;
    }
    draft_->CreateService(replica.name, manifests_.Service(replica.type, replica.index));
    return true;
  }

  // A quota or an admission plugin refuses all pods alike: one probe at a time.
  bool AllPodsHeldBack() {
    bool held = false;
    for (const Replica& replica : seen_.replicas) {
      auto it = errors_[Kind::kPod].find(replica.name);
      if (it == errors_[Kind::kPod].end() || !Missing(replica)) continue;
      Obstruct(kFailedCreatePod, it->second->message);
      if (it->second->code != base::ErrorCode::kAlreadyExists && HeldBack(*it->second)) held = true;
    }
    return held;
  }

  static bool Missing(const Replica& replica) {
    return !replica.completed && replica.pod == nullptr && replica.stale == nullptr;
  }

  void WantPods() {
    const bool job_scope = job_.spec.run_policy.restart_scope == RestartScope::kJob;
    // With attempts nothing of the new one starts before the old one is gone.
    if (job_scope && !seen_.stale.empty()) {
      missing_ = true;
      return;
    }
    const bool all_held_back = AllPodsHeldBack();
    std::optional<Turn> shared;
    for (const Replica& replica : seen_.replicas) {
      if (replica.stale != nullptr) missing_ = true;
      if (!Missing(replica)) continue;
      if (replica.holder != nullptr) {
        Obstruct(kFailedCreatePod, Taken("pods", *replica.holder));
        continue;
      }
      if (all_held_back) continue;
      if (auto it = errors_[Kind::kPod].find(replica.name);
          it != errors_[Kind::kPod].end() && HeldBack(*it->second)) {
        continue;
      }
      if (!job_scope || !shared) shared = NextTurn(*draft_, seen_, replica);
      if (draft_->now < shared->at) {
        draft_->LookAgain(shared->at);
        continue;
      }
      missing_ = true;
      draft_->CreatePod(replica.name,
                        manifests_.Pod(replica.type, replica.index, shared->replacement));
    }
  }

  void UpdateCondition() {
    JobStatus& status = draft_->status;
    if (obstacle_) {
      const Condition* old = draft_->job.status.Find(kReplicaFailure);
      const bool news = old == nullptr || !old->status || old->reason != obstacle_->reason ||
                        old->message != obstacle_->message;
      SetCondition(&status, kReplicaFailure, true, obstacle_->reason, obstacle_->message,
                   draft_->now);
      if (news) {
        draft_->events.push_back(
            {true, obstacle_->reason, "Error creating: " + obstacle_->message});
      }
      draft_->Because("cannot create: " + obstacle_->message);
      return;
    }
    const Condition* old = status.Find(kReplicaFailure);
    if (missing_ || old == nullptr || !old->status) return;
    Leave(&status, kReplicaFailure,
          old->reason == kFailedCreateService ? "SuccessfulCreateService" : "SuccessfulCreatePod",
          "All pods and Services of PyTorchJob " + job_.key.name + " exist.", draft_->now);
  }

  Draft* draft_;
  const Observation& seen_;
  const Job job_;
  const Manifests manifests_;
  std::map<Kind, std::unordered_map<std::string, const CreateError*>> errors_;
  std::optional<Obstacle> obstacle_;
  // Something that the job needs is not there yet and could be: a replacement whose delay has not
  // passed is no such thing.
  bool missing_ = false;
};

}  // namespace

seconds CreateRetryDelay(base::ErrorCode code, int tries) {
  // A taken name is likely to be free soon; a spec that is refused will be refused again.
  const seconds most = code == base::ErrorCode::kAlreadyExists ? seconds{10}
                       : code == base::ErrorCode::kInvalid     ? seconds{300}
                                                               : seconds{60};
  seconds delay{1};
  for (int i = 1; i < tries && delay < most; ++i) delay *= 2;
  return std::min(delay, most);
}

void WantChildren(Draft* draft, const Observation& seen) { Children(draft, seen).Want(); }

}  // namespace core
