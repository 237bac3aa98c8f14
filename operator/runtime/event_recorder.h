#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>

#include "core/plan.h"
#include "runtime/api.h"
#include "runtime/work_queue.h"

namespace runtime {

struct EventOptions {
  std::size_t queue_limit = 100000;           // more are dropped, the newest first
  std::chrono::minutes retry_for{10};         // then an undelivered event is dropped
  std::chrono::minutes aggregate_within{10};  // the same event again counts up the first one
  std::size_t remembered = 4096;              // events that can still be counted up
  std::chrono::milliseconds retry_first{200};
  std::chrono::milliseconds retry_longest{10000};
};

// Delivers events about jobs in the background, in order, each once. A name is chosen before the
// first try, so that a retry after a lost reply does not make a second event. Thread-safe.
class EventRecorder {
 public:
  // `dropped` is called for each event that could not be delivered. `api` outlives this object.
  EventRecorder(Api& api, Clock clock, std::function<void()> dropped, EventOptions options = {});
  // Tries for up to two seconds to deliver what waits; counts the rest as dropped.
  ~EventRecorder();

  void Record(const core::JobKey& job, const std::string& job_uid, const core::Event& event);

  // Events that wait for delivery.
  std::size_t pending() const;

 private:
  struct Item {
    core::JobKey job;
    std::string job_uid;
    core::Event event;
    core::TimePoint at;
    std::string name;
  };
  struct Delivered {
    std::string name;
    int count = 1;
    core::TimePoint first;
    core::TimePoint last;
    uint64_t used = 0;
  };
  using Same = std::tuple<std::string, bool, std::string, std::string>;

  void Run(std::stop_token stop);
  enum class Sent { kDone, kRetry, kDrop };
  Sent Send(const Item& item);
  void Remember(Same same, Delivered delivered);

  Api& api_;
  const Clock clock_;
  const std::function<void()> dropped_;
  const EventOptions options_;

  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<Item> queue_;                     // guarded by mutex_
  uint64_t sequence_ = 0;                      // guarded by mutex_
  std::map<Same, Delivered> delivered_;        // of the thread
  std::map<uint64_t, Same> delivered_by_use_;  // of the thread
  uint64_t uses_ = 0;                          // of the thread
  std::jthread thread_;                        // last: it uses all above
};

}  // namespace runtime
