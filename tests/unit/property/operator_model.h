#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "core/plan.h"
#include "property/cluster.h"
#include "property/oracle.h"

namespace model {

// How one write of a pass goes wrong.
enum class Fault {
  kNone,
  kLostReply,  // it is done, but the operator hears a timeout
  kRefused,    // 500, it is not done
  kConflict,   // the job changes right before the write
};

// What the operator's runtime does around the pure core: caches that lag behind the watches but
// never behind the own writes, a look when an event or the timer asks for one, the memory that is
// lost when the process dies.
class OperatorModel {
 public:
  using Log = std::function<void(const std::string&)>;
  OperatorModel(Cluster* cluster, Oracle* oracle, const TimePoint* clock, Log log);

  // The watches bring at most `jobs`, `pods`, `services` further events.
  void Deliver(size_t jobs, size_t pods, size_t services);
  void DeliverAll();
  bool Due() const { return woken_ || (timer_ && clock_ >= *timer_); }
  std::optional<TimePoint> timer() const { return timer_; }
  // One look; the process dies after `crash_after` actions (-1: it lives on). The `fault_at`-th
  // write goes wrong.
  void Pass(int crash_after, Fault fault, int fault_at);
  // Nothing to do at this moment, whatever wakes the operator.
  void RequireIdle();
  void Settled() const;
  void Crash();

  core::Snapshot Look() const;
  int status_writes() const { return status_writes_; }

 private:
  struct Outcome {
    bool died = false;
    bool stop = false;   // the pass ends
    bool again = false;  // decide once more in this pass
  };
  Outcome Carry(const core::Snapshot& snapshot, const core::Plan& plan);
  base::Result<uint64_t> Write(const core::Action& action);
  base::Result<uint64_t> WriteStatus(const core::Snapshot& snapshot,
                                     const core::WriteStatus& action);
  void Created(const core::Create& create, const base::Result<uint64_t>& result, Outcome* outcome);
  bool Owned(core::Kind kind, const std::string& name) const;
  void Apply(const Change<core::Job>& change);
  void Apply(const Change<core::Pod>& change);
  void Apply(const Change<core::Service>& change);
  void CatchUpWithOwnWrites();
  core::Plan Decide(const core::Snapshot& snapshot) const;

  Cluster& cluster_;
  Oracle& oracle_;
  const TimePoint& clock_;
  const Log log_;
  core::Options options_;

  // Caches.
  std::shared_ptr<const core::Job> job_;
  std::map<std::string, std::shared_ptr<const core::Pod>> pods_;
  std::map<std::string, std::shared_ptr<const core::Service>> services_;
  size_t jobs_seen_ = 0, pods_seen_ = 0, services_seen_ = 0;  // events of each log
  uint64_t own_job_ = 0, own_pod_ = 0, own_service_ = 0;      // revisions of own writes

  // Memory of the process.
  std::map<std::string, core::DepartedPod> departed_;  // by name, of job_
  std::map<std::pair<core::Kind, std::string>, core::CreateError> errors_;
  std::map<std::string, core::NodeState> nodes_;  // within one pass
  std::optional<TimePoint> status_written_, timer_;
  bool woken_ = true;
  uint64_t previous_status_revision_ = 0;

  int crash_after_ = -1;
  Fault fault_ = Fault::kNone;
  int fault_at_ = 0;
  int status_writes_ = 0;
  int decisions_ = 0;
};

}  // namespace model
