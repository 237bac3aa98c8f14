#include "core/policy/restart.h"

#include <algorithm>
#include <array>

#include "core/names.h"

namespace core {
namespace {

// Exit codes from 128 up mean a signal (128 + its number) and are worth another try.
constexpr int kFirstRetryableExitCode = 128;
constexpr seconds kFirstDelay{10};
constexpr seconds kMaxDelay{600};
constexpr seconds kRanLong{600};

}  // namespace

bool Disrupted(const Pod& pod) {
  static constexpr std::array<std::string_view, 10> kReasons = {
      "Evicted",    "NodeLost",   "Shutdown",     "NodeShutdown",
      "Terminated", "Preempting", "NodeAffinity", "UnexpectedAdmissionError",
      "NodePorts",  "NodeName"};
  if (!pod.disruption.empty()) return true;
  return std::find(kReasons.begin(), kReasons.end(), pod.reason) != kReasons.end() ||
         pod.reason.starts_with("OutOf");
}

std::optional<Termination> FailedContainer(const Pod& pod, const std::string& training_container) {
  std::optional<Termination> other;
  for (const Container& container : pod.containers) {
    if (container.init || !container.terminated || container.terminated->exit_code == 0) continue;
    if (container.name == training_container) return container.terminated;
    if (!other) other = container.terminated;
  }
  return other;
}

Verdict Judge(const Pod& pod, RestartPolicy policy, const std::string& training_container) {
  if (Disrupted(pod)) return Verdict::kDisrupted;
  if (policy == RestartPolicy::kNever) return Verdict::kFatal;
  if (policy != RestartPolicy::kExitCode) return Verdict::kRetry;
  auto failed = FailedContainer(pod, training_container);
  if (!failed) return Verdict::kRetry;
  return failed->exit_code >= kFirstRetryableExitCode ? Verdict::kRetry : Verdict::kFatal;
}

int Restarts(const Pod& pod) {
  int restarts = 0;
  for (const Container& container : pod.containers) {
    if (!container.init) restarts += container.restarts;
  }
  return restarts;
}

int CrashLooping(const Pod& pod) {
  return static_cast<int>(
      std::count_if(pod.containers.begin(), pod.containers.end(), [](const Container& c) {
        return !c.init && c.waiting_reason == "CrashLoopBackOff" && c.last_terminated &&
               c.last_terminated->exit_code != 0;
      }));
}

TimePoint EndOf(const Pod& pod) {
  std::optional<TimePoint> end;
  for (const Container& container : pod.containers) {
    if (!container.terminated || !container.terminated->finished) continue;
    if (!end || *container.terminated->finished > *end) end = container.terminated->finished;
  }
  if (end) return *end;
  return pod.changed.value_or(pod.created);
}

int NextReplacement(const Pod& pod, TimePoint end) {
  if (pod.started && end - *pod.started >= kRanLong) return 1;
  return pod.replacement + 1;
}

seconds ReplacementDelay(int k) {
  if (k <= 1) return seconds{0};
  seconds delay = kFirstDelay;
  for (int i = 2; i < k && delay < kMaxDelay; ++i) delay *= 2;
  return std::min(delay, kMaxDelay);
}

LastFailure DescribeFailure(const Pod& pod, const std::string& training_container) {
  LastFailure failure;
  failure.pod = pod.name;
  failure.replica_type = Name(pod.type);
  failure.index = pod.index;
  failure.time = std::chrono::floor<seconds>(EndOf(pod));
  auto container = FailedContainer(pod, training_container);
  if (!container) {  // an init container's end says why nothing else started
    for (const Container& c : pod.containers) {
      if (c.init && c.terminated && c.terminated->exit_code != 0) container = c.terminated;
    }
  }
  if (container) {
    failure.exit_code = container->exit_code;
    failure.reason = container->reason;
    failure.message = container->message;
  }
  if (!pod.disruption.empty()) failure.reason = pod.disruption;
  if (!pod.reason.empty()) failure.reason = pod.reason;
  if (failure.message.empty()) failure.message = pod.message;
  return failure;
}

std::string Sentence(const LastFailure& failure) {
  std::string text = "Pod " + failure.pod;
  if (failure.exit_code) {
    text += " exited with code " + std::to_string(*failure.exit_code);
    if (!failure.reason.empty()) text += " (" + failure.reason + ")";
  } else {
    text += failure.reason.empty() ? " failed" : " failed (" + failure.reason + ")";
  }
  if (!failure.message.empty()) text += ": " + Truncated(failure.message, 512);
  text.erase(text.find_last_not_of(" \n\r\t") + 1);  // the end of a traceback
  return text.ends_with('.') ? text : text + ".";
}

}  // namespace core
