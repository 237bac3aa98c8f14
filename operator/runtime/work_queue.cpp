#include "runtime/work_queue.h"

#include <algorithm>
#include <utility>

namespace runtime {
namespace {

constexpr uint64_t kLowestEvery = 8;
// The longest sleep between two looks at the clock, so that a clock that was set is noticed.
constexpr std::chrono::milliseconds kLongestSleep{10000};

}  // namespace

WorkQueue::WorkQueue(Clock clock, BackoffOptions backoff, QueueObserver* observer)
    : clock_(std::move(clock)), backoff_(backoff), observer_(observer) {}

void WorkQueue::Add(const core::JobKey& key, Priority priority) {
  {
    std::lock_guard lock(mutex_);
    if (processing_.contains(key)) {
      auto [it, added] = dirty_.emplace(key, priority);
      if (!added) it->second = std::min(it->second, priority);
      return;
    }
    Enqueue(key, priority);
  }
  wake_.notify_one();
}

void WorkQueue::Enqueue(const core::JobKey& key, Priority priority) {
  auto it = waiting_.find(key);
  if (it != waiting_.end()) {
    if (priority >= it->second.priority) return;
    places_.erase({it->second.priority, it->second.order, key});
    it->second.priority = priority;
    places_.emplace(priority, it->second.order, key);
    return;
  }
  ++changes_;
  waiting_[key] = {priority, order_, clock_()};
  places_.emplace(priority, order_++, key);
  if (observer_) observer_->Added(waiting_.size());
}

void WorkQueue::LookAgainAt(const core::JobKey& key, std::optional<core::TimePoint> when) {
  {
    std::lock_guard lock(mutex_);
    auto it = delayed_.find(key);
    if (it != delayed_.end()) {
      by_time_.erase({it->second, key});
      delayed_.erase(it);
    }
    if (!when) return;
    ++changes_;
    delayed_[key] = *when;
    by_time_.emplace(*when, key);
  }
  wake_.notify_one();
}

std::chrono::milliseconds WorkQueue::Retry(const core::JobKey& key) {
  std::chrono::milliseconds delay = backoff_.first;
  {
    std::lock_guard lock(mutex_);
    const int before = failures_[key]++;
    for (int i = 0; i < before && delay < backoff_.longest; ++i) delay *= 2;
    delay = std::min(delay, backoff_.longest);
    if (observer_) observer_->Retried();
  }
  LookAgainAt(key, clock_() + delay);
  return delay;
}

void WorkQueue::Forget(const core::JobKey& key) {
  std::lock_guard lock(mutex_);
  failures_.erase(key);
}

void WorkQueue::WakeDue() {
  const core::TimePoint now = clock_();
  while (!by_time_.empty() && by_time_.begin()->first <= now) {
    const core::JobKey key = by_time_.begin()->second;
    by_time_.erase(by_time_.begin());
    delayed_.erase(key);
    if (processing_.contains(key)) {
      dirty_.emplace(key, Priority::kNormal);
    } else {
      Enqueue(key, Priority::kNormal);
    }
  }
}

std::optional<core::JobKey> WorkQueue::TakeWaiting() {
  if (places_.empty()) return std::nullopt;
  auto place = places_.begin();
  if (++takes_ % kLowestEvery == 0) {
    place = places_.lower_bound({std::get<Priority>(*places_.rbegin()), 0, core::JobKey{}});
  }
  core::JobKey key = std::get<core::JobKey>(*place);
  const core::TimePoint now = clock_();
  const core::TimePoint since = waiting_[key].since;
  places_.erase(place);
  waiting_.erase(key);
  processing_[key] = now;
  if (observer_) observer_->Took(waiting_.size(), now - since);
  return key;
}

std::optional<core::JobKey> WorkQueue::TryTake() {
  std::lock_guard lock(mutex_);
  WakeDue();
  return TakeWaiting();
}

std::optional<core::JobKey> WorkQueue::Take(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    WakeDue();
    if (auto key = TakeWaiting()) {
      // Several may have become due at once, and one notification woke only this worker.
      if (!places_.empty()) wake_.notify_one();
      return key;
    }
    std::chrono::milliseconds sleep = kLongestSleep;
    if (!by_time_.empty()) {
      sleep = std::clamp(std::chrono::milliseconds(by_time_.begin()->first - clock_()),
                         std::chrono::milliseconds(1), kLongestSleep);
    }
    wake_.wait_for(lock, stop, sleep, [&, seen = changes_] { return changes_ != seen; });
  }
  return std::nullopt;
}

void WorkQueue::Done(const core::JobKey& key) {
  {
    std::lock_guard lock(mutex_);
    auto it = processing_.find(key);
    if (it == processing_.end()) return;
    if (observer_) observer_->Finished(clock_() - it->second);
    processing_.erase(it);
    auto dirty = dirty_.find(key);
    if (dirty == dirty_.end()) return;
    Enqueue(key, dirty->second);
    dirty_.erase(dirty);
  }
  wake_.notify_one();
}

std::size_t WorkQueue::depth() const {
  std::lock_guard lock(mutex_);
  return waiting_.size();
}

}  // namespace runtime
