#include "runtime/unanswered.h"

#include <algorithm>
#include <utility>

#include "core/encode.h"
#include "core/json.h"

namespace runtime {
namespace {

using core::Json;
using core::Kind;

// A job that can't be reached collects no more than these.
constexpr std::size_t kMost = 4096;

// Whether applying this merge patch to `object` would change nothing.
bool Contains(const Json& object, const Json& patch) {
  if (patch.is_null()) return object.is_null();
  if (!patch.is_object()) return object == patch;
  for (const auto& [key, value] : patch.items()) {
    if (!Contains(core::Get(object, key.c_str()), value)) return false;
  }
  return true;
}

template <class Objects>
auto Named(const Objects& objects, const std::string& name) {
  return std::find_if(objects.begin(), objects.end(),
                      [&](const auto& object) { return object->name == name; });
}

bool Exists(const core::Snapshot& snapshot, const core::Create& create) {
  switch (create.kind) {
    case Kind::kPod: {
      const auto pod = Named(snapshot.pods, create.name);
      return pod != snapshot.pods.end() && !(*pod)->deletion;
    }
    case Kind::kService: {
      const auto service = Named(snapshot.services, create.name);
      return service != snapshot.services.end() && !(*service)->deleting;
    }
    case Kind::kPodGroup:
      return snapshot.pod_group.has_value();
    case Kind::kAutoscaler:
      return snapshot.autoscaler.has_value();
    case Kind::kJob:
      break;
  }
  return false;
}

// It is not there any more, or on its way out.
bool Leaves(const core::Snapshot& snapshot, const core::Delete& what) {
  for (const auto& pod : snapshot.pods) {
    if (pod->uid == what.uid) return pod->deletion.has_value();
  }
  for (const auto& service : snapshot.services) {
    if (service->uid == what.uid) return service->deleting;
  }
  if (snapshot.pod_group && snapshot.pod_group->uid == what.uid) {
    return snapshot.pod_group->deleting;
  }
  if (snapshot.autoscaler && snapshot.autoscaler->uid == what.uid) {
    return snapshot.autoscaler->deleting;
  }
  return snapshot.job->uid != what.uid || snapshot.job->deleting;
}

bool IsStatus(const core::Action& action) {
  return std::holds_alternative<core::WriteStatus>(action);
}

}  // namespace

void Unanswered::Add(std::vector<core::Action> actions) {
  std::move(actions.begin(), actions.end(), std::back_inserter(actions_));
  if (actions_.size() > kMost) {
    actions_.erase(actions_.begin(), actions_.end() - static_cast<std::ptrdiff_t>(kMost));
  }
}

void Unanswered::StatusWritten() { std::erase_if(actions_, IsStatus); }

void Unanswered::Answered(bool created, Kind kind, const std::string& name) {
  std::erase_if(actions_, [&](const core::Action& action) {
    const auto* create = std::get_if<core::Create>(&action);
    const auto* gone = std::get_if<core::Delete>(&action);
    return created ? create && create->kind == kind && create->name == name
                   : gone && gone->kind == kind && gone->name == name;
  });
}

Unanswered::Shown Unanswered::Take(const core::Snapshot& snapshot) {
  Shown shown;
  if (actions_.empty()) return shown;
  const Json status = core::EncodeStatus(snapshot.job->status, true);
  bool status_shown = false;
  std::erase_if(actions_, [&](const core::Action& action) {
    if (const auto* write = std::get_if<core::WriteStatus>(&action)) {
      const Json patch = Json::parse(write->patch, nullptr, false);
      if (status_shown || !Contains(status, core::Get(patch, "status"))) return false;
      status_shown = true;
      shown.events = write->events;
      shown.transitions = write->transitions;
      return true;
    }
    if (const auto* create = std::get_if<core::Create>(&action)) {
      if (!Exists(snapshot, *create)) return false;
      shown.done.push_back({true, create->kind, create->name});
      return true;
    }
    const auto* gone = std::get_if<core::Delete>(&action);
    if (gone == nullptr) return true;
    if (!Leaves(snapshot, *gone)) return false;
    shown.done.push_back({false, gone->kind, gone->name});
    return true;
  });
  if (status_shown) StatusWritten();  // the others were further tries of the same
  return shown;
}

Unanswered::Shown Unanswered::TakeGone() {
  Shown shown;
  for (const core::Action& action : std::exchange(actions_, {})) {
    const auto* gone = std::get_if<core::Delete>(&action);
    if (gone == nullptr || gone->kind != Kind::kJob || !shown.done.empty()) continue;
    shown.done.push_back({false, gone->kind, gone->name});
  }
  return shown;
}

}  // namespace runtime
