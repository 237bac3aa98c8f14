#include <time.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "kube/lease.h"

namespace kube {
namespace {

using nlohmann::json;

const Resource kLeases{"coordination.k8s.io", "v1", "leases"};

// Unlike steady_clock it goes on while the machine sleeps, as the other contenders' clocks do.
LeaseTime Now() {
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return LeaseTime(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

// RFC 3339 with microseconds, the form of metav1.MicroTime.
std::string NowText() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(
                          now - std::chrono::system_clock::from_time_t(seconds))
                          .count();
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[80];
  std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", parts.tm_year + 1900,
                parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                static_cast<int>(std::clamp<long>(micros, 0, 999999)));
  return text;
}

}  // namespace

base::Result<LeaseRecord> ParseLease(std::string_view text) {
  const json lease = json::parse(text, nullptr, false);
  const auto no_lease = [] {
    return base::Error{base::ErrorCode::kInternal, "the answer is no Lease", {}};
  };
  if (!lease.is_object() || !lease.contains("metadata") || !lease["metadata"].is_object()) {
    return no_lease();
  }
  const json spec = lease.value("spec", json::object());
  if (!spec.is_object()) return no_lease();
  const auto string_of = [](const json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const auto int_of = [&spec](const char* name) {
    const auto found = spec.find(name);
    return found != spec.end() && found->is_number_integer() ? found->get<int>() : 0;
  };
  return LeaseRecord{
      string_of(spec, "holderIdentity"), int_of("leaseDurationSeconds"),
      string_of(spec, "acquireTime"),    string_of(spec, "renewTime"),
      int_of("leaseTransitions"),        string_of(lease["metadata"], "resourceVersion")};
}

std::string LeaseBody(const LeaseOptions& options, const LeaseRecord& record) {
  json metadata{{"name", options.name}, {"namespace", options.ns}};
  if (!record.resource_version.empty()) metadata["resourceVersion"] = record.resource_version;
  json spec{{"holderIdentity", record.holder},
            {"leaseDurationSeconds", std::max(1, record.duration_seconds)},
            {"leaseTransitions", record.transitions}};
  if (!record.acquire_time.empty()) spec["acquireTime"] = record.acquire_time;
  if (!record.renew_time.empty()) spec["renewTime"] = record.renew_time;
  return json{{"apiVersion", "coordination.k8s.io/v1"},
              {"kind", "Lease"},
              {"metadata", metadata},
              {"spec", spec}}
      .dump();
}

LeaderElection::LeaderElection(Client& client, LeaseOptions options,
                               std::function<void(bool)> on_change)
    : client_(client), options_(std::move(options)), on_change_(std::move(on_change)) {}

LeaseInput LeaderElection::Perform(const LeaseAction& action) {
  LeaseInput input;
  input.sent = Now();
  base::Result<std::string> reply = [&] {
    switch (action.kind) {
      case LeaseAction::Kind::kCreate:
        return client_.Create(kLeases, options_.ns, LeaseBody(options_, action.record));
      case LeaseAction::Kind::kUpdate:
        return client_.Update(kLeases, options_.ns, options_.name,
                              LeaseBody(options_, action.record));
      default:
        return client_.Get(kLeases, options_.ns, options_.name);
    }
  }();
  const bool read = action.kind == LeaseAction::Kind::kRead;
  std::string why;
  input.kind = LeaseInput::Kind::kFailed;
  if (reply.ok()) {
    auto record = ParseLease(*reply);
    if (record.ok()) {
      input.kind = read ? LeaseInput::Kind::kRead : LeaseInput::Kind::kWritten;
      input.record = std::move(*record);
    } else {
      why = record.error().message;
    }
  } else if (read && reply.error().code == base::ErrorCode::kNotFound) {
    input.kind = LeaseInput::Kind::kRead;
  } else {
    why = reply.error().message;
  }
  std::lock_guard lock(mutex_);
  if (input.record) holder_ = input.record->holder;
  last_error_ = std::move(why);
  return input;
}

void LeaderElection::Run(std::stop_token stop) {
  LeaseState state;
  LeaseInput input;
  bool told = false;
  while (true) {
    auto [next, action] = Step(std::move(state), input, options_, Now(), NowText());
    state = std::move(next);
    const LeaseTime until = state.renewed_at + options_.renew_deadline;
    may_write_until_ = state.leading ? until.time_since_epoch().count() : 0;
    if (state.leading != told) on_change_(told = state.leading);
    if (stop.stop_requested()) break;
    if (action.kind != LeaseAction::Kind::kWait) {
      input = Perform(action);
      continue;
    }
    // The end of leadership is not slept through.
    const LeaseTime wake = state.leading ? std::min(action.until, until) : action.until;
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any stopped;
    stopped.wait_for(lock, stop, wake - Now(), [] { return false; });
    input = LeaseInput{};
  }
  if (!state.leading || !state.observed) return;
  may_write_until_ = 0;
  LeaseRecord released = *state.observed;
  released.holder.clear();
  released.duration_seconds = 1;
  released.renew_time = NowText();
  Perform({LeaseAction::Kind::kUpdate, released, {}});
  on_change_(false);
}

bool LeaderElection::MayWrite() const {
  return Now().time_since_epoch().count() < may_write_until_.load();
}

std::string LeaderElection::Holder() const {
  std::lock_guard lock(mutex_);
  return holder_;
}

std::string LeaderElection::LastError() const {
  std::lock_guard lock(mutex_);
  return last_error_;
}

}  // namespace kube
