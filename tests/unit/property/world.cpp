#include "property/world.h"

#include <array>

#include "core/names.h"

namespace model {
namespace {

using core::Json;
using core::Kind;

constexpr std::array kTicks = {
    std::chrono::milliseconds{100},    std::chrono::milliseconds{1000},
    std::chrono::milliseconds{5000},   std::chrono::milliseconds{11000},
    std::chrono::milliseconds{90000},  std::chrono::milliseconds{330000},
    std::chrono::milliseconds{700000}, std::chrono::milliseconds{7200000}};
// Passes that a moment may take without any news from outside.
constexpr int kMaxPasses = 40;
constexpr int kMaxRoundsToEnd = 200;

// 2026-01-01T00:00:00.250Z: not on a full second.
constexpr TimePoint kStart{std::chrono::milliseconds{1767225600250}};

std::string NeededName(int arg) {
  const bool master = arg % 3 == 0;
  return core::PodName(kJobName, master ? core::ReplicaType::kMaster : core::ReplicaType::kWorker,
                       master ? 0 : arg / 3 % 4);
}

}  // namespace

World::World(const Setup& setup, OperatorModel::Log log)
    : clock_(kStart),
      setup_(setup),
      log_(std::move(log)),
      cluster_(setup, &clock_),
      kubelet_(&cluster_, &clock_),
      oracle_(&cluster_),
      operator_(&cluster_, &oracle_, &clock_, log_) {
  for (int step = 0; setup.runs && step < 3; ++step) {
    Settle();
    kubelet_.StepAll(false);
  }
}

void World::Note(const std::string& text) {
  if (log_) log_(text);
}

bool World::Finished() const { return cluster_.job != nullptr && cluster_.job->status.Finished(); }

void World::Pass(int arg, int crash_after, Fault fault) {
  static constexpr std::array<size_t, 4> kAmounts = {SIZE_MAX, SIZE_MAX, 0, 1};
  operator_.Deliver(kAmounts[arg % 4], kAmounts[arg / 4 % 4], kAmounts[arg / 16 % 4]);
  if (operator_.Due()) operator_.Pass(crash_after, fault, arg % 3);
}

void World::Settle() {
  operator_.DeliverAll();
  for (int pass = 0; operator_.Due(); ++pass) {
    Require(pass < kMaxPasses, "the operator does not come to rest");
    Note("  pass");
    operator_.Pass(-1, Fault::kNone, 0);
    operator_.DeliverAll();
  }
  operator_.RequireIdle();
  operator_.Settled();
}

bool World::Sleep() {
  Settle();
  const auto timer = operator_.timer();
  if (cluster_.job == nullptr || !timer) return false;
  clock_ = std::max(clock_, *timer);
  Note("  sleeps until " + core::FormatTime(clock_));
  Settle();
  return true;
}

std::string World::DoKubelet(const Op& op) {
  switch (op.step) {
    case Step::kSchedule:
      return kubelet_.Schedule(op.arg);
    case Step::kStart:
      return kubelet_.Start(op.arg);
    case Step::kExit:
      return kubelet_.Exit(op.arg);
    case Step::kRecover:
      return kubelet_.Recover(op.arg);
    case Step::kFailOddly:
      return kubelet_.FailOddly(op.arg);
    case Step::kVanish:
      return kubelet_.Vanish(op.arg);
    case Step::kWait:
      return kubelet_.Wait(op.arg);
    case Step::kEvict:
      return kubelet_.Evict(op.arg);
    case Step::kRefuse:
      return kubelet_.Refuse(op.arg);
    case Step::kLoseNode:
      return kubelet_.LoseNode(op.arg);
    case Step::kNodeBack:
      return kubelet_.NodeBack(op.arg);
    default:
      return "";
  }
}

void World::Scale(int arg) {
  if (setup_.workers == 0) return;
  const bool zero_allowed = setup_.master && !setup_.elastic;
  const int workers = zero_allowed ? arg % 4 : 1 + arg % 3;
  Note("  to " + std::to_string(workers));
  cluster_.EditSpec(
      [&](Json& spec) { spec["pytorchReplicaSpecs"]["Worker"]["replicas"] = workers; });
}

void World::DoUser(const Op& op) {
  auto run_policy = [&](const char* key, Json value) {
    cluster_.EditSpec([&](Json& spec) { spec["runPolicy"][key] = value; });
  };
  const std::string name = NeededName(op.arg);
  switch (op.step) {
    case Step::kDeletePod:
      if (auto it = cluster_.pods.find(name); it != cluster_.pods.end()) {
        Note("  " + name);
        (void)cluster_.Delete(Kind::kPod, name, it->second->uid, std::nullopt);
      }
      return;
    case Step::kDeleteService:
      if (cluster_.services.contains(name)) cluster_.Remove(Kind::kService, name);
      return;
    case Step::kRelabel:
      if (auto it = cluster_.pods.find(name);
          it != cluster_.pods.end() && it->second->owner_kind == "PyTorchJob") {
        cluster_.EditPod(name, [](core::Pod& pod) { pod.labels_intact = false; });
      }
      return;
    case Step::kSuspend:
      return run_policy("suspend", true);
    case Step::kResume:
      return run_policy("suspend", false);
    case Step::kScale:
      return Scale(op.arg);
    case Step::kTouch:
      return cluster_.TouchJob();
    case Step::kEditDeadline:
      return run_policy("activeDeadlineSeconds", 1 + 40 * (op.arg % 16));
    case Step::kEditTtl:
      return run_policy("ttlSecondsAfterFinished", 40 * (op.arg % 16));
    case Step::kDeleteJob:
      return cluster_.DeleteJob();
    case Step::kCreateJob:
      return cluster_.CreateJob();
    case Step::kForeignPod:
      Note("  " + name);
      return cluster_.CreateForeign(Kind::kPod, name, op.arg % 2 == 0);
    case Step::kForeignService:
      Note("  " + name);
      return cluster_.CreateForeign(Kind::kService, name, op.arg % 2 == 0);
    case Step::kRemoveForeign:
      cluster_.RemoveForeign();
      return;
    case Step::kQuotaOn:
      cluster_.quota = true;
      return;
    case Step::kQuotaOff:
      cluster_.quota = false;
      return;
    default:
      return;
  }
}

void World::Do(const Op& op) {
  Note(std::string(Name(op.step)) + " " + std::to_string(op.arg) + "  at " +
       core::FormatTime(clock_));
  switch (op.step) {
    case Step::kPass:
      return Pass(op.arg, -1, Fault::kNone);
    case Step::kCrashPass:
      return Pass(op.arg, op.arg % 5, Fault::kNone);
    case Step::kFaultPass:
      return Pass(0, -1, static_cast<Fault>(1 + op.arg / 4 % 3));
    case Step::kSettle:
      return Settle();
    case Step::kSleep:
      Sleep();
      return;
    case Step::kTick:
      clock_ += kTicks[op.arg % kTicks.size()];
      return;
    case Step::kCollect:
      cluster_.CollectGarbage();
      return;
    case Step::kAll:
      kubelet_.StepAll(op.arg % 2 == 0);
      return;
    default:
      break;
  }
  if (std::string what = DoKubelet(op); !what.empty()) Note("  " + what);
  DoUser(op);
}

void World::Conclude() {
  Note("all faults end");
  cluster_.quota = false;
  cluster_.CreateJob();
  while (cluster_.RemoveForeign()) {
  }
  while (cluster_.CollectGarbage()) {
  }
  cluster_.EditSpec([](Json& spec) { spec["runPolicy"].erase("suspend"); });
  const std::string uid = cluster_.job->uid;
  bool may_succeed = false;
  for (int round = 0; round < kMaxRoundsToEnd; ++round) {
    clock_ += std::chrono::milliseconds{1500};
    Settle();
    if (cluster_.job == nullptr) return;
    if (Finished()) {
      // Whatever ends is cleaned up; then at most the ttl is waited for.
      while (kubelet_.StepAll(true) || cluster_.CollectGarbage()) {
        Settle();
        if (cluster_.job == nullptr) return;
      }
      if (!Sleep()) return;
      continue;
    }
    Note("kubelet");
    if (kubelet_.StepAll(may_succeed) || cluster_.CollectGarbage()) continue;
    if (cluster_.job->status.Is("Running") && setup_.policy == 3) return;  // Always runs for ever
    if (!may_succeed) {
      may_succeed = true;
      continue;
    }
    Require(Sleep(), "the job never ends: nothing is due");
  }
  throw Violation{"the job does not end in time"};
}

std::optional<std::string> Run(const History& history) {
  try {
    World world(history.setup);
    for (const Op& op : history.ops) world.Do(op);
    world.Conclude();
  } catch (const Violation& violation) {
    return violation.what;
  }
  return std::nullopt;
}

std::string Tell(const History& history) {
  std::string text;
  auto log = [&](const std::string& line) { text += line + "\n"; };
  try {
    World world(history.setup, log);
    for (const Op& op : history.ops) world.Do(op);
    world.Conclude();
  } catch (const Violation& violation) {
    log("VIOLATION: " + violation.what);
  }
  return text;
}

}  // namespace model
