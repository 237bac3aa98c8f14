#include "runtime/plan_runner.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/json.h"
#include "runtime/holder.h"
#include "runtime/parallel.h"

namespace runtime {
namespace {

using base::ErrorCode;
using core::Json;
using core::Kind;

// Fields of the status that only our CRD knows.
constexpr const char* kOwnFields[] = {"observedGeneration", "summary", "restartCount", "attempt",
                                      "accountedPods",      "waiting", "lastFailure"};

// None when the patch sets no own field.
std::optional<bool> OwnFieldsKept(const std::string& patch, const std::string& reply) {
  const Json sent = Json::parse(patch, nullptr, false);
  const Json got = Json::parse(reply, nullptr, false);
  std::optional<bool> kept;
  for (const char* field : kOwnFields) {
    if (core::Get(core::Get(sent, "status"), field).is_null()) continue;
    kept = kept.value_or(true) && !core::Get(core::Get(got, "status"), field).is_null();
  }
  return kept;
}

std::string VersionOf(const std::string& reply) {
  const Json json = Json::parse(reply, nullptr, false);
  if (core::GetString(json, "kind") == "Status") return "";
  return core::GetString(core::Get(json, "metadata"), "resourceVersion");
}

template <class T>
void ReplaceByName(std::vector<std::shared_ptr<const T>>& objects, T object) {
  std::erase_if(objects, [&](const auto& o) { return o->name == object.name; });
  objects.push_back(std::make_shared<const T>(std::move(object)));
}

// How many actions from `first` on are of type `Action` and of one kind of object.
template <class Action>
std::size_t RunLength(std::span<const core::Action> actions) {
  const Kind kind = std::get<Action>(actions[0]).kind;
  std::size_t n = 1;
  while (n < actions.size()) {
    const auto* next = std::get_if<Action>(&actions[n]);
    if (!next || next->kind != kind) break;
    ++n;
  }
  return n;
}

}  // namespace

bool IsTransient(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUnauthorized:
    case ErrorCode::kTooManyRequests:
    case ErrorCode::kTimeout:
    case ErrorCode::kUnavailable:
      return true;
    default:
      return false;
  }
}

bool MayBeApplied(ErrorCode code) {
  return code == ErrorCode::kTimeout || code == ErrorCode::kUnavailable;
}

// One run of one plan.
class PlanRunner::Pass {
 public:
  Pass(const PlanRunner& runner, core::Snapshot& snapshot, std::stop_token stop)
      : runner_(runner),
        api_(runner.api_),
        snapshot_(snapshot),
        key_(snapshot.job->key),
        stop_(std::move(stop)) {}

  Outcome Run(std::span<const core::Action> actions) {
    while (!actions.empty()) {
      if (stop_.stop_requested()) {
        outcome_.end = Outcome::End::kStopped;
        break;
      }
      std::size_t n = 1;
      if (const auto* write = std::get_if<core::WriteStatus>(&actions[0])) {
        WriteStatus(*write);
      } else if (const auto* patch = std::get_if<core::Patch>(&actions[0])) {
        Patch(*patch);
      } else if (std::holds_alternative<core::Create>(actions[0])) {
        n = RunLength<core::Create>(actions);
        CreateAll(actions.first(n));
      } else {
        n = RunLength<core::Delete>(actions);
        DeleteAll(actions.first(n));
      }
      if (outcome_.end != Outcome::End::kDone) break;
      actions = actions.subspan(n);
    }
    return std::move(outcome_);
  }

 private:
  void Fail(const base::Error& error, std::string at) {
    if (outcome_.end != Outcome::End::kDone) return;
    outcome_.end =
        error.code == ErrorCode::kCancelled ? Outcome::End::kStopped : Outcome::End::kFailed;
    outcome_.error = error;
    outcome_.at = std::move(at);
  }

  void NoteVersion(Kind kind, const std::string& reply) {
    std::string version = VersionOf(reply);
    std::string& newest = outcome_.written[kind];
    if (Revision(version) > Revision(newest)) newest = std::move(version);
  }

  void WriteStatus(const core::WriteStatus& write) {
    auto reply = api_.PatchStatus(key_, write.patch);
    if (!reply) {
      Fail(reply.error(), "write the status");
      if (MayBeApplied(reply.error().code)) outcome_.unanswered.push_back(write);
      if (reply.error().code == ErrorCode::kConflict ||
          reply.error().code == ErrorCode::kNotFound) {
        outcome_.end = Outcome::End::kConflict;
      }
      return;
    }
    NoteVersion(Kind::kJob, *reply);
    outcome_.wrote_status = true;
    std::copy(write.events.begin(), write.events.end(), std::back_inserter(outcome_.events));
    std::copy(write.transitions.begin(), write.transitions.end(),
              std::back_inserter(outcome_.transitions));
    if (auto kept = OwnFieldsKept(write.patch, *reply)) {
      outcome_.own_fields_kept = outcome_.own_fields_kept.value_or(true) && *kept;
    }
    snapshot_.status_written = runner_.clock_();
    if (auto job = core::DecodeJob(*reply)) {
      snapshot_.job = std::make_shared<const core::Job>(std::move(*job));
    }
  }

  void Patch(const core::Patch& patch) {
    auto reply = api_.Patch(patch.kind, key_.ns, patch.name, patch.body);
    if (reply) {
      NoteVersion(patch.kind, *reply);
      Fold(patch.kind, *reply);
    } else if (reply.error().code != ErrorCode::kNotFound) {
      Fail(reply.error(), "patch " + std::string(core::Name(patch.kind)) + " " + patch.name);
    }
  }

  // What a create or its answer showed, in the snapshot.
  void Fold(Kind kind, const std::string& object) {
    if (kind == Kind::kPod) {
      if (auto pod = core::DecodePod(object)) ReplaceByName(snapshot_.pods, std::move(*pod));
    } else if (kind == Kind::kService) {
      if (auto service = core::DecodeService(object)) {
        ReplaceByName(snapshot_.services, std::move(*service));
      }
    } else if (kind == Kind::kPodGroup) {
      if (auto group = core::DecodePodGroup(object)) snapshot_.pod_group = std::move(*group);
    } else if (kind == Kind::kAutoscaler) {
      if (auto scaler = core::DecodeAutoscaler(object)) snapshot_.autoscaler = std::move(*scaler);
    }
  }

  // Slow start, as the Job controller does it: 1, 2, 4, 8 … at a time, so that a quota that refuses
  // all costs one request and not a thousand.
  void CreateAll(std::span<const core::Action> creates) {
    const Kind kind = std::get<core::Create>(creates[0]).kind;
    if (ended_.contains(kind)) return;
    std::size_t batch = 1;
    while (!creates.empty()) {
      const std::size_t n = std::min(batch, creates.size());
      std::vector<std::optional<base::Result<std::string>>> replies(n);
      ForEachParallel(n, runner_.width_, [&](std::size_t i) {
        replies[i] = CreateOne(std::get<core::Create>(creates[i]), kind);
      });
      for (std::size_t i = 0; i < n; ++i) {
        Created(std::get<core::Create>(creates[i]), *replies[i]);
      }
      if (outcome_.end != Outcome::End::kDone || ended_.contains(kind)) return;
      if (stop_.stop_requested()) {
        outcome_.end = Outcome::End::kStopped;
        return;
      }
      creates = creates.subspan(n);
      batch *= 2;
    }
  }

  // A name that exists is looked at: it may be ours, made by a request whose reply was lost.
  base::Result<std::string> CreateOne(const core::Create& create, Kind kind) {
    auto reply = api_.Create(kind, key_.ns, create.body);
    if (reply || reply.error().code != ErrorCode::kAlreadyExists) return reply;
    auto held = api_.Get(kind, key_.ns, create.name);
    if (!held) {
      if (held.error().code != ErrorCode::kNotFound) return held.error();
      return base::Error{ErrorCode::kUnavailable, "it was deleted while it was being made", {}};
    }
    const auto holder = ReadHolder(kind, *held);
    if (holder && holder->owner_uid == snapshot_.job->uid) return held;
    base::Error error = reply.error();
    error.message += ": held by " + (holder ? holder->description : "an unreadable object");
    return error;
  }

  void Created(const core::Create& create, const base::Result<std::string>& reply) {
    if (!reply) {
      const base::Error& error = reply.error();
      if (IsTransient(error.code) || error.code == ErrorCode::kCancelled) {
        Fail(error, "create " + std::string(core::Name(create.kind)) + " " + create.name);
      }
      if (error.code == ErrorCode::kCancelled) return;
      if (MayBeApplied(error.code)) outcome_.unanswered.push_back(create);
      ended_.insert(create.kind);
      outcome_.refused.push_back(
          {create.kind, create.name, error.code, error.message, runner_.clock_(), 1});
      return;
    }
    outcome_.created.emplace_back(create.kind, create.name);
    bool made = true;
    if (create.kind == Kind::kPod) {
      // Found under its name with other labels, or on its way out: it was made long ago.
      auto pod = core::DecodePod(*reply);
      made = pod.ok() && pod->labels_intact && !pod->deletion;
      if (pod && !made) runner_.cache_.Learn(*pod);
    }
    if (made) {
      NoteVersion(create.kind, *reply);
      outcome_.done.push_back({true, create.kind, create.name});
    } else {
      outcome_.found = true;
    }
    Fold(create.kind, *reply);
  }

  void DeleteAll(std::span<const core::Action> deletes) {
    std::vector<std::optional<base::Result<std::string>>> replies(deletes.size());
    ForEachParallel(deletes.size(), runner_.width_, [&](std::size_t i) {
      replies[i] = api_.Delete(key_.ns, std::get<core::Delete>(deletes[i]));
    });
    for (std::size_t i = 0; i < deletes.size(); ++i) {
      Deleted(std::get<core::Delete>(deletes[i]), *replies[i]);
    }
  }

  void Deleted(const core::Delete& what, const base::Result<std::string>& reply) {
    if (!reply) {
      const ErrorCode code = reply.error().code;
      // Gone, or another object by now: done, silently.
      if (code != ErrorCode::kNotFound && code != ErrorCode::kConflict) {
        Fail(reply.error(), "delete " + std::string(core::Name(what.kind)) + " " + what.name);
        if (MayBeApplied(code)) outcome_.unanswered.push_back(what);
        return;
      }
      Forget(what);
      return;
    }
    runner_.cache_.NoteDeleted(key_, what.kind, what.name, what.uid);
    outcome_.done.push_back({false, what.kind, what.name});
    if (what.kind == Kind::kJob) return;
    NoteVersion(what.kind, *reply);
    auto pod =
        what.kind == Kind::kPod ? core::DecodePod(*reply) : base::Result<core::Pod>(base::Error{});
    if (pod && pod->uid == what.uid && pod->deletion) {
      ReplaceByName(snapshot_.pods, std::move(*pod));
    } else {
      Forget(what);
    }
  }

  void Forget(const core::Delete& what) {
    std::erase_if(snapshot_.pods, [&](const auto& p) { return p->uid == what.uid; });
    std::erase_if(snapshot_.services, [&](const auto& s) { return s->uid == what.uid; });
    if (what.kind == Kind::kPodGroup) snapshot_.pod_group.reset();
    if (what.kind == Kind::kAutoscaler) snapshot_.autoscaler.reset();
  }

  const PlanRunner& runner_;
  Api& api_;
  core::Snapshot& snapshot_;
  const core::JobKey key_;
  const std::stop_token stop_;
  std::set<Kind> ended_;  // kinds of which a create was refused
  Outcome outcome_;
};

PlanRunner::PlanRunner(Api& api, Cache& cache, Clock clock, int width)
    : api_(api), cache_(cache), clock_(std::move(clock)), width_(std::max(width, 1)) {}

Outcome PlanRunner::Run(const core::Plan& plan, core::Snapshot& snapshot,
                        std::stop_token stop) const {
  return Pass(*this, snapshot, std::move(stop)).Run(plan.actions);
}

}  // namespace runtime
