#pragma once

#include <spdlog/logger.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/plan.h"
#include "runtime/cache.h"
#include "runtime/event_recorder.h"
#include "runtime/metrics.h"
#include "runtime/plan_runner.h"
#include "runtime/unanswered.h"
#include "runtime/work_queue.h"

namespace runtime {

struct ControllerOptions {
  core::Options decide;
  int threads = 4;
  int max_in_flight = 64;
  // How long a pass waits for the watches to bring what the pass before wrote.
  std::chrono::seconds longest_wait{10};
};

// Takes keys and makes what is so: snapshot -> core::Decide -> the plan's actions. Level-triggered;
// what it remembers of a job between passes can be lost without harm.
class Controller {
 public:
  // All outlive this object.
  Controller(ControllerOptions options, Api& api, Cache& cache, WorkQueue& queue,
             EventRecorder& events, Metrics& metrics, Clock clock,
             std::shared_ptr<spdlog::logger> log);
  ~Controller();

  // Starts the workers. What another process may have done meanwhile is taken from the cache.
  void Start();
  // No new pass begins; returns when the writes in flight have ended.
  void Stop();
  bool running() const { return running_; }

  // One pass over one job, on the caller's thread; what a worker does.
  void Pass(const core::JobKey& key, std::stop_token stop);

 private:
  // What is remembered of a job.
  struct Memory {
    std::string uid;
    std::map<std::pair<core::Kind, std::string>, core::CreateError> create_errors;
    std::map<core::Kind, std::string> written;  // resourceVersions that the watches must pass
    core::TimePoint written_at{};
    std::optional<core::TimePoint> status_written;
    Unanswered unanswered;
    std::string conflict_version;  // the resourceVersion that a status write found outdated
    bool complained = false;       // its error is in the log
  };
  void Work(std::stop_token stop);
  Metrics::PassResult RunPass(const core::JobKey& key, std::stop_token stop);
  Memory& MemoryOf(const core::JobKey& key, const std::string& uid);
  // Whether the cache is new enough to decide on; if not, when to look again is set.
  bool FreshEnough(const core::Job& job, Memory& memory);
  base::Result<void> AnswerProbes(const core::JobKey& key, const Cache::View& view);
  core::Options OptionsNow() const;
  core::Plan DecideWithNodes(core::Snapshot& snapshot, const core::Options& options);
  // Decides and acts, again if creates were refused, until the status tells all. Returns how the
  // last plan went and when to look again.
  Outcome::End Act(core::Snapshot& snapshot, Memory& memory, std::stop_token stop,
                   std::optional<core::TimePoint>& look_again_at);
  // Keeps what the next pass must know. True when a refusal is new or reads otherwise.
  bool Remember(Memory& memory, const Outcome& outcome) const;
  // Events and metrics of what a write whose answer was lost turns out to have done.
  void Tell(const core::JobKey& key, const std::string& uid, const Unanswered::Shown& shown);
  void NoteOwnFields(const core::Job& job, bool kept);
  void Complain(const core::JobKey& key, Memory& memory, const std::string& at,
                const base::Error& error);

  const ControllerOptions options_;
  Api& api_;
  Cache& cache_;
  WorkQueue& queue_;
  EventRecorder& events_;
  Metrics& metrics_;
  const Clock clock_;
  const std::shared_ptr<spdlog::logger> log_;
  const PlanRunner runner_;

  std::atomic<bool> running_{false};
  std::atomic<bool> crd_outdated_{false};
  std::atomic<bool> nodes_forbidden_{false};
  std::mutex mutex_;
  std::map<core::JobKey, Memory> memories_;  // guarded by mutex_; each entry is its worker's
  std::vector<std::jthread> workers_;
};

}  // namespace runtime
