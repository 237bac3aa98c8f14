#include "core/conditions.h"

#include <algorithm>
#include <array>

namespace core {
namespace {

constexpr std::array<std::string_view, 5> kExclusive = {kRunning, kRestarting, kSuspended,
                                                        kSucceeded, kFailed};

bool IsExclusive(std::string_view type) {
  return std::find(kExclusive.begin(), kExclusive.end(), type) != kExclusive.end();
}

}  // namespace

void SetCondition(JobStatus* status, std::string_view type, bool value, const std::string& reason,
                  const std::string& message, TimePoint now) {
  const TimePoint second = std::chrono::floor<seconds>(now);
  auto it = std::find_if(status->conditions.begin(), status->conditions.end(),
                         [&](const Condition& c) { return c.type == type; });
  Condition next{std::string(type), value, reason, message, second, second};
  if (it != status->conditions.end()) {
    if (it->status == value && it->reason == reason && it->message == message) return;
    if (it->status == value) {
      next.last_transition = it->last_transition;
      *it = std::move(next);
      return;
    }
    status->conditions.erase(it);
  }
  status->conditions.push_back(std::move(next));
}

void Enter(JobStatus* status, std::string_view type, const std::string& reason,
           const std::string& message, TimePoint now) {
  const bool end = type == kSucceeded || type == kFailed;
  for (std::string_view other : kExclusive) {
    const Condition* condition = other == type ? nullptr : status->Find(other);
    if (condition == nullptr || !condition->status) continue;
    const std::string old_reason = condition->reason, old_message = condition->message;
    SetCondition(status, other, false, end ? old_reason : reason, end ? old_message : message, now);
  }
  SetCondition(status, type, true, reason, message, now);
}

void Leave(JobStatus* status, std::string_view type, const std::string& reason,
           const std::string& message, TimePoint now) {
  if (status->Is(type)) SetCondition(status, type, false, reason, message, now);
}

void Order(JobStatus* status) {
  auto true_one = std::any_of(status->conditions.begin(), status->conditions.end(),
                              [](const Condition& c) { return c.status && IsExclusive(c.type); });
  auto place = [&](const Condition& c) {
    if (c.type == kCreated) return true_one ? 0 : 3;
    if (c.type == kReplicaFailure) {
      if (true_one) return 1;
      return c.status ? 4 : 2;
    }
    if (!IsExclusive(c.type)) return true_one ? 1 : 2;  // somebody else's
    return c.status ? 5 : 2;
  };
  std::stable_sort(status->conditions.begin(), status->conditions.end(),
                   [&](const Condition& a, const Condition& b) { return place(a) < place(b); });
}

}  // namespace core
