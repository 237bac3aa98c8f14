#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <tuple>

#include "core/model.h"

namespace runtime {

using Clock = std::function<core::TimePoint()>;

// Which waiting key goes first.
enum class Priority {
  kUrgent,   // a user just made or changed the job
  kNormal,   // its children changed, or its time has come
  kBacklog,  // a list found it: the start of the operator, or a relist
};

// What the queue tells the metrics. Called with the queue's mutex held: must return at once and not
// call back.
class QueueObserver {
 public:
  virtual ~QueueObserver() = default;
  virtual void Added(std::size_t depth) = 0;
  virtual void Took(std::size_t depth, std::chrono::milliseconds waited) = 0;
  virtual void Finished(std::chrono::milliseconds worked) = 0;
  virtual void Retried() = 0;
};

struct BackoffOptions {
  std::chrono::milliseconds first{5};
  std::chrono::milliseconds longest{300000};
};

// The keys of the jobs that need a look, each at most once however often it is added. A key is
// never handed to two workers at a time: added while it is worked on, it comes again after Done.
// Of each priority the oldest first; every eighth take serves the lowest priority that waits, so
// that a stream of new jobs never starves the others. Thread-safe.
class WorkQueue {
 public:
  explicit WorkQueue(Clock clock, BackoffOptions backoff = {}, QueueObserver* observer = nullptr);

  // A key that waits already keeps its place, or moves up to the higher priority.
  void Add(const core::JobKey& key, Priority priority);
  // When the key comes by itself if nothing happens before. It replaces what was set before;
  // nullopt clears it.
  void LookAgainAt(const core::JobKey& key, std::optional<core::TimePoint> when);
  // After an error: comes again after 5 ms, 10 ms, … 5 min, doubled at each call since the last
  // Forget. Returns the delay.
  std::chrono::milliseconds Retry(const core::JobKey& key);
  // After a success: the next error starts at the shortest delay again.
  void Forget(const core::JobKey& key);

  // Waits for a key; nullopt when `stop` is requested.
  std::optional<core::JobKey> Take(std::stop_token stop);
  // Does not wait.
  std::optional<core::JobKey> TryTake();
  // Ends what Take began. Every taken key must be given back.
  void Done(const core::JobKey& key);

  std::size_t depth() const;

 private:
  using Place = std::tuple<Priority, uint64_t, core::JobKey>;
  struct Waiting {
    Priority priority;
    uint64_t order;
    core::TimePoint since;
  };

  void Enqueue(const core::JobKey& key, Priority priority);
  void WakeDue();
  std::optional<core::JobKey> TakeWaiting();

  const Clock clock_;
  const BackoffOptions backoff_;
  QueueObserver* const observer_;

  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  // All below are guarded by mutex_.
  std::set<Place> places_;
  std::map<core::JobKey, Waiting> waiting_;
  std::map<core::JobKey, core::TimePoint> processing_;          // since when
  std::map<core::JobKey, Priority> dirty_;                      // added while processing
  std::map<core::JobKey, core::TimePoint> delayed_;             // one time a key
  std::set<std::pair<core::TimePoint, core::JobKey>> by_time_;  // the same, by time
  std::map<core::JobKey, int> failures_;
  uint64_t order_ = 0;
  uint64_t takes_ = 0;
  uint64_t changes_ = 0;  // what a sleeping worker compares
};

}  // namespace runtime
