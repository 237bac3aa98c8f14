#include "core/draft.h"

#include <algorithm>

#include "core/conditions.h"
#include "core/encode.h"
#include "core/manifest.h"
#include "core/names.h"

namespace core {
namespace {

// Writes that only bring counts up to date are at least this far apart.
constexpr std::chrono::milliseconds kCountInterval{1000};
constexpr size_t kMaxConditionMessage = 4096;

}  // namespace

Draft::Draft(const Snapshot& snapshot, TimePoint now, const Options& options)
    : snapshot(snapshot),
      job(*snapshot.job),
      now(now),
      options(options),
      status(snapshot.job->status) {}

void Draft::LookAgain(TimePoint at) {
  if (!look_again_at_ || at < *look_again_at_) look_again_at_ = at;
}

void Draft::DeletePod(const Pod& pod, std::optional<int> grace_seconds) {
  if (pod.deletion && !grace_seconds) return;
  actions_.push_back(Delete{Kind::kPod, pod.name, pod.uid, grace_seconds});
}

void Draft::DeleteService(const Service& service) {
  if (service.deleting) return;
  actions_.push_back(Delete{Kind::kService, service.name, service.uid, std::nullopt});
}

void Draft::DeleteServices() {
  for (const auto& service : snapshot.services) DeleteService(*service);
}

void Draft::DeleteJob() {
  actions_.push_back(Delete{Kind::kJob, job.key.name, job.uid, std::nullopt});
}

void Draft::CreatePod(const std::string& name, std::string body) {
  actions_.push_back(Create{Kind::kPod, name, std::move(body)});
}

void Draft::CreateService(const std::string& name, std::string body) {
  actions_.push_back(Create{Kind::kService, name, std::move(body)});
}

void Draft::PatchPod(const std::string& name, std::string body) {
  actions_.push_back(Patch{Kind::kPod, name, std::move(body)});
}

void Draft::CreateOwned(Kind kind, const std::string& api_version, const Json& spec) {
  // By these labels the operator watches what it has made.
  const Json labels = {{kOperatorNameLabel, kOperatorName}, {kJobNameLabel, job.key.name}};
  Json body = {{"apiVersion", api_version},
               {"kind", std::string(Name(kind))},
               {"metadata", ChildMetadata(job, job.key.name, labels)},
               {"spec", spec}};
  actions_.push_back(Create{kind, job.key.name, Dump(body)});
}

void Draft::PatchOwned(Kind kind, const std::string& name, std::string body) {
  actions_.push_back(Patch{kind, name, std::move(body)});
}

void Draft::DeleteOwned(Kind kind, const std::string& name, const std::string& uid) {
  actions_.push_back(Delete{kind, name, uid, std::nullopt});
}

void Draft::AskNode(const std::string& node) {
  if (std::find(ask_nodes_.begin(), ask_nodes_.end(), node) == ask_nodes_.end()) {
    ask_nodes_.push_back(node);
  }
}

void Draft::Because(const std::string& why) { why_ += (why_.empty() ? "" : "; ") + why; }

bool Draft::OnlyCountsChanged() const {
  JobStatus old = job.status;
  old.summary = status.summary;
  old.waiting = status.waiting;
  for (auto& [type, replica] : old.replicas) {
    auto it = status.replicas.find(type);
    if (it == status.replicas.end()) return false;
    replica.active = it->second.active;
    replica.ready = it->second.ready;
  }
  return old == status;
}

Plan Draft::Finish() {
  for (Condition& condition : status.conditions) {
    condition.message = Truncated(std::move(condition.message), kMaxConditionMessage);
  }
  Order(&status);
  const bool own_fields = !options.crd_outdated;
  const Json patch =
      MergePatch(EncodeStatus(job.status, own_fields), EncodeStatus(status, own_fields));
  Plan plan;
  if (!patch.empty()) {
    if (snapshot.status_written && now < *snapshot.status_written + kCountInterval &&
        OnlyCountsChanged()) {
      LookAgain(*snapshot.status_written + kCountInterval);
    } else {
      plan.actions.push_back(WriteStatus{
          Dump({{"metadata", {{"resourceVersion", job.resource_version}}}, {"status", patch}}),
          std::move(transitions), std::move(events)});
    }
  }
  std::move(actions_.begin(), actions_.end(), std::back_inserter(plan.actions));
  plan.look_again_at = look_again_at_;
  plan.ask_nodes = std::move(ask_nodes_);
  plan.why = std::move(why_);
  return plan;
}

void RecordCreated(Draft* draft) {
  if (draft->status.Find(kCreated) != nullptr) return;
  SetCondition(&draft->status, kCreated, true, kReasonCreated,
               "PyTorchJob " + draft->name() + " is created.", draft->now);
  draft->transitions.push_back(Transition::kCreated);
  if (!draft->job.errors.empty()) return;  // its templates may be of any shape
  for (Event& event : Manifests(draft->job, draft->options).Warnings()) {
    draft->events.push_back(std::move(event));
  }
}

void End(Draft* draft, const char* type, const std::string& reason, const std::string& message) {
  const bool success = type == std::string_view(kSucceeded);
  Enter(&draft->status, type, reason, message, draft->now);
  draft->status.completion_time = std::chrono::floor<seconds>(draft->now);
  draft->transitions.push_back(success ? Transition::kSuccessful : Transition::kFailed);
  const bool validation = reason == kReasonValidation;
  draft->events.push_back({!success,
                           success      ? kReasonSucceeded
                           : validation ? kReasonValidation
                                        : kReasonFailed,
                           Truncated(message, 1000)});
  draft->Because(message);
}

}  // namespace core
