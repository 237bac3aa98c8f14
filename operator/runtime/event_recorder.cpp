#include "runtime/event_recorder.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/json.h"
#include "runtime/plan_runner.h"

namespace runtime {
namespace {

constexpr char kComponent[] = "pytorch-operator";
constexpr std::size_t kMaxMessage = 1024;  // the API server's limit for events
constexpr std::size_t kMaxReason = 128;
constexpr std::chrono::seconds kFlush{2};

uint64_t Fnv(std::string_view text, uint64_t hash = 14695981039346656037ull) {
  for (unsigned char c : text) hash = (hash ^ c) * 1099511628211ull;
  return hash;
}

// Cut where a UTF-8 character begins.
std::string Cut(std::string text, std::size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;
  text.resize(limit);
  return text;
}

}  // namespace

EventRecorder::EventRecorder(Api& api, Clock clock, std::function<void()> dropped,
                             EventOptions options)
    : api_(api),
      clock_(std::move(clock)),
      dropped_(std::move(dropped)),
      options_(options),
      thread_([this](std::stop_token stop) { Run(std::move(stop)); }) {}

EventRecorder::~EventRecorder() {
  {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, kFlush, [&] { return queue_.empty(); });
  }
  thread_.request_stop();
  thread_.join();
  for (std::size_t i = 0; i < queue_.size(); ++i) dropped_();
}

void EventRecorder::Record(const core::JobKey& job, const std::string& job_uid,
                           const core::Event& event) {
  const core::TimePoint now = clock_();
  {
    std::lock_guard lock(mutex_);
    if (queue_.size() >= options_.queue_limit) {
      dropped_();
      return;
    }
    // Unique over restarts of the operator too: the time is part of it.
    const uint64_t id = Fnv(
        job_uid + event.reason + event.message,
        Fnv(std::to_string(now.time_since_epoch().count()) + "/" + std::to_string(sequence_++)));
    char suffix[20];
    std::snprintf(suffix, sizeof suffix, ".%016llx", static_cast<unsigned long long>(id));
    queue_.push_back({job, job_uid, event, now, job.name + suffix});
  }
  wake_.notify_all();
}

std::size_t EventRecorder::pending() const {
  std::lock_guard lock(mutex_);
  return queue_.size();
}

void EventRecorder::Run(std::stop_token stop) {
  std::chrono::milliseconds delay = options_.retry_first;
  std::unique_lock lock(mutex_);
  while (wake_.wait(lock, stop, [&] { return !queue_.empty(); })) {
    const Item item = queue_.front();  // stays there until it is delivered
    lock.unlock();
    const Sent sent = Send(item);
    lock.lock();
    if (sent == Sent::kRetry && clock_() < item.at + options_.retry_for) {
      wake_.wait_for(lock, stop, delay, [] { return false; });
      if (stop.stop_requested()) return;
      delay = std::min(delay * 2, options_.retry_longest);
      continue;
    }
    if (sent != Sent::kDone) dropped_();
    delay = options_.retry_first;
    queue_.pop_front();
    if (queue_.empty()) wake_.notify_all();  // for the destructor
    if (stop.stop_requested()) return;
  }
}

EventRecorder::Sent EventRecorder::Send(const Item& item) {
  const Same same{item.job_uid, item.event.warning, item.event.reason, item.event.message};
  Delivered next{item.name, 1, item.at, item.at};
  auto before = delivered_.find(same);
  const bool again =
      before != delivered_.end() && item.at < before->second.last + options_.aggregate_within;
  base::Result<std::string> reply = base::Error{base::ErrorCode::kNotFound, "", {}};
  if (again) {
    next = {before->second.name, before->second.count + 1, before->second.first, item.at};
    reply = api_.PatchEvent(
        item.job.ns, next.name,
        core::Dump({{"count", next.count}, {"lastTimestamp", core::FormatTime(next.last)}}));
    if (!reply && reply.error().code == base::ErrorCode::kNotFound) {
      next = {item.name, 1, item.at, item.at};  // it has expired: a new one
    }
  }
  if (!reply && reply.error().code == base::ErrorCode::kNotFound) {
    reply = api_.CreateEvent(
        item.job.ns, core::Dump({{"apiVersion", "v1"},
                                 {"kind", "Event"},
                                 {"metadata", {{"name", next.name}, {"namespace", item.job.ns}}},
                                 {"involvedObject",
                                  {{"apiVersion", "kubeflow.org/v1"},
                                   {"kind", "PyTorchJob"},
                                   {"namespace", item.job.ns},
                                   {"name", item.job.name},
                                   {"uid", item.job_uid}}},
                                 {"type", item.event.warning ? "Warning" : "Normal"},
                                 {"reason", Cut(item.event.reason, kMaxReason)},
                                 {"message", Cut(item.event.message, kMaxMessage)},
                                 {"source", {{"component", kComponent}}},
                                 {"reportingComponent", kComponent},
                                 {"reportingInstance", ""},
                                 {"count", 1},
                                 {"firstTimestamp", core::FormatTime(next.first)},
                                 {"lastTimestamp", core::FormatTime(next.last)}}));
  }
  if (!reply) {
    const base::ErrorCode code = reply.error().code;
    // A reply was lost and the event is there.
    if (code != base::ErrorCode::kAlreadyExists) {
      const bool later = IsTransient(code) || code == base::ErrorCode::kCancelled;
      return later ? Sent::kRetry : Sent::kDrop;
    }
  }
  Remember(same, std::move(next));
  return Sent::kDone;
}

void EventRecorder::Remember(Same same, Delivered delivered) {
  if (auto it = delivered_.find(same); it != delivered_.end()) {
    delivered_by_use_.erase(it->second.used);
  }
  delivered.used = uses_++;
  delivered_by_use_[delivered.used] = same;
  delivered_[std::move(same)] = std::move(delivered);
  if (delivered_.size() > options_.remembered) {
    delivered_.erase(delivered_by_use_.begin()->second);
    delivered_by_use_.erase(delivered_by_use_.begin());
  }
}

}  // namespace runtime
