#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/client.h"

namespace kube {

// Leader election over one coordination.k8s.io/v1 Lease. Safe without synchronised clocks: a record
// is held to be alive until it has not changed for its own duration as measured here, and times in
// the record are for humans only. See https://kubernetes.io/docs/concepts/architecture/leases/.
struct LeaseOptions {
  std::string ns;
  std::string name;
  std::string identity;                             // unique for each process
  std::chrono::milliseconds duration{15000};        // others take over after this
  std::chrono::milliseconds renew_deadline{10000};  // the leader stops writing after this
  std::chrono::milliseconds retry_period{2000};     // between renewals
};

// Time since boot that goes on while a process is stopped or its machine sleeps.
using LeaseTime = std::chrono::time_point<std::chrono::steady_clock>;

struct LeaseRecord {
  std::string holder;  // "" = released
  int duration_seconds = 0;
  std::string acquire_time;  // RFC 3339 with microseconds
  std::string renew_time;
  int transitions = 0;
  std::string resource_version;

  bool operator==(const LeaseRecord&) const = default;
};

// The pure part: what this process knows, and what it does next.
struct LeaseState {
  std::optional<LeaseRecord> observed;  // not set: never read, or the Lease does not exist
  LeaseTime observed_at{};              // when the record was first seen as it is
  bool leading = false;
  bool must_read = false;  // a request has failed: what is stored may differ from `observed`
  LeaseTime renewed_at{};  // when the last renewal that succeeded was sent
};

struct LeaseInput {
  enum class Kind {
    kTick,     // time has passed
    kRead,     // GET answered: `record`, or none for 404
    kWritten,  // our create or update succeeded: `record` as stored
    kFailed,   // GET failed, or a write failed or its fate is unknown
  };
  Kind kind = Kind::kTick;
  std::optional<LeaseRecord> record;
  LeaseTime sent{};  // when the request was sent
};

struct LeaseAction {
  enum class Kind {
    kRead,    // GET the Lease
    kCreate,  // POST `record`
    kUpdate,  // PUT `record`, with its resourceVersion
    kWait,    // until `until`, then kTick
  };
  Kind kind = Kind::kWait;
  LeaseRecord record;
  LeaseTime until{};
};

struct LeaseStep {
  LeaseState next;
  LeaseAction action;
};

// `now_text` is the wall clock for the record's human-readable times.
LeaseStep Step(LeaseState state, const LeaseInput& input, const LeaseOptions& options,
               LeaseTime now, const std::string& now_text);

// True while a process in `state` may write: it leads and its renew deadline has not passed.
bool MayWrite(const LeaseState& state, const LeaseOptions& options, LeaseTime now);

base::Result<LeaseRecord> ParseLease(std::string_view json);
std::string LeaseBody(const LeaseOptions& options, const LeaseRecord& record);

// Runs the election on the caller's thread.
class LeaderElection {
 public:
  // `on_change` is called from Run's thread with true when elected and with false when leadership
  // has ended (deadline passed, taken over or released). `client` is for this alone, so that no
  // limit and no Cancel() of the writers' client delays a renewal; its timeouts are best at the
  // retry period. It outlives this object.
  LeaderElection(Client& client, LeaseOptions options, std::function<void(bool leading)> on_change);

  // Campaigns, leads, campaigns again. On `stop` it releases the lease if it holds it and returns:
  // stop all writers first.
  void Run(std::stop_token stop);

  // To be asked before each write; thread-safe. False from the renew deadline on, whatever Run
  // does.
  bool MayWrite() const;

  // Who holds the lease as last seen ("" = nobody), for logs; thread-safe.
  std::string Holder() const;
  // Why the last request failed, "" if it did not; thread-safe.
  std::string LastError() const;

 private:
  LeaseInput Perform(const LeaseAction& action);

  Client& client_;
  LeaseOptions options_;
  std::function<void(bool)> on_change_;
  std::atomic<std::chrono::steady_clock::rep> may_write_until_{0};  // since boot; 0 = not leading
  mutable std::mutex mutex_;
  std::string holder_;      // guarded by mutex_
  std::string last_error_;  // guarded by mutex_
};

}  // namespace kube
