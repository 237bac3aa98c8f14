#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <string>
#include <vector>

namespace model {

// One step of a history. Each works on any state of the world (it does nothing where it makes no
// sense), so that every part of a history is a history and can be shrunk by leaving steps out.
enum class Step : uint8_t {
  // The operator.
  kPass,       // some of the watches' events arrive, then a look if one is due
  kCrashPass,  // likewise, but the process dies after `arg` actions and starts anew
  kFaultPass,  // likewise, with one failing write
  kSettle,     // all events arrive, looks until nothing is due
  kSleep,      // likewise, then time passes until the operator's own timer
  // Time.
  kTick,
  // The kubelet, the scheduler, the garbage collector.
  kSchedule,
  kStart,
  kExit,       // exit code by `arg`; restarted in place where the pod's policy says so
  kRecover,    // out of CrashLoopBackOff
  kFailOddly,  // Failed without any exit code
  kVanish,     // a terminating pod is gone
  kWait,       // Unschedulable, ImagePullBackOff …
  kCollect,    // garbage collection
  kAll,        // every pod goes one step on
  // Disruptions.
  kEvict,
  kRefuse,  // OutOfcpu
  kLoseNode,
  kNodeBack,
  // Users and admins.
  kDeletePod,
  kDeleteService,
  kRelabel,
  kSuspend,
  kResume,
  kScale,
  kTouch,
  kEditDeadline,
  kEditTtl,
  kDeleteJob,
  kCreateJob,
  kForeignPod,
  kForeignService,
  kRemoveForeign,
  kQuotaOn,
  kQuotaOff,
};
const char* Name(Step step);

struct Op {
  Step step = Step::kPass;
  int arg = 0;  // 0..63
};

// What kind of job it is. Zeros make the simplest one.
struct Setup {
  int workers = 0;         // 0..3
  bool master = true;      // else worker-only, with at least one worker
  int policy = 0;          // OnFailure, Never, ExitCode, Always
  int backoff = 0;         // 0 = not set, else backoffLimit + 1
  int deadline = 0;        // 0 = not set, else an index of seconds
  int ttl = 0;             // likewise
  int clean = 0;           // not set, All, Running, None
  bool job_scope = false;  // restartScope: Job
  bool elastic = false;
  bool service_per_replica = false;
  bool runs = false;  // all pods run when the history begins
};

struct History {
  Setup setup;
  std::vector<Op> ops;
};

rc::Gen<History> Histories();
std::string Describe(const Setup& setup);
std::ostream& operator<<(std::ostream& out, const History& history);

}  // namespace model
