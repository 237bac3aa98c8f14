#include "property/history.h"

#include <array>
#include <ostream>

namespace model {
namespace {

struct Entry {
  Step step;
  const char* name;
  int weight;
};
constexpr std::array kSteps = {
    Entry{Step::kPass, "Pass", 16},
    Entry{Step::kCrashPass, "CrashPass", 6},
    Entry{Step::kFaultPass, "FaultPass", 4},
    Entry{Step::kSettle, "Settle", 10},
    Entry{Step::kSleep, "Sleep", 4},
    Entry{Step::kTick, "Tick", 6},
    Entry{Step::kSchedule, "Schedule", 3},
    Entry{Step::kStart, "Start", 4},
    Entry{Step::kExit, "Exit", 12},
    Entry{Step::kRecover, "Recover", 3},
    Entry{Step::kFailOddly, "FailOddly", 1},
    Entry{Step::kVanish, "Vanish", 6},
    Entry{Step::kWait, "Wait", 2},
    Entry{Step::kCollect, "Collect", 2},
    Entry{Step::kAll, "All", 14},
    Entry{Step::kEvict, "Evict", 3},
    Entry{Step::kRefuse, "Refuse", 1},
    Entry{Step::kLoseNode, "LoseNode", 1},
    Entry{Step::kNodeBack, "NodeBack", 1},
    Entry{Step::kDeletePod, "DeletePod", 4},
    Entry{Step::kDeleteService, "DeleteService", 1},
    Entry{Step::kRelabel, "Relabel", 1},
    Entry{Step::kSuspend, "Suspend", 2},
    Entry{Step::kResume, "Resume", 3},
    Entry{Step::kScale, "Scale", 3},
    Entry{Step::kTouch, "Touch", 2},
    Entry{Step::kEditDeadline, "EditDeadline", 1},
    Entry{Step::kEditTtl, "EditTtl", 1},
    Entry{Step::kDeleteJob, "DeleteJob", 1},
    Entry{Step::kCreateJob, "CreateJob", 2},
    Entry{Step::kForeignPod, "ForeignPod", 2},
    Entry{Step::kForeignService, "ForeignService", 1},
    Entry{Step::kRemoveForeign, "RemoveForeign", 3},
    Entry{Step::kQuotaOn, "QuotaOn", 1},
    Entry{Step::kQuotaOff, "QuotaOff", 2},
};

// The steps, each as often as its weight says.
std::vector<Step> Weighted() {
  std::vector<Step> steps;
  for (const Entry& entry : kSteps) steps.insert(steps.end(), entry.weight, entry.step);
  return steps;
}

rc::Gen<Setup> Setups() {
  using rc::gen::element;
  return rc::gen::apply(
      [](int workers, bool master, int policy, int backoff, int deadline, int ttl, int clean,
         bool job_scope, bool elastic, bool service_per_replica, bool runs) {
        Setup setup{workers, master, policy,    backoff, deadline,
                    ttl,     clean,  job_scope, elastic, service_per_replica,
                    runs};
        if (!setup.master && setup.workers == 0) setup.workers = 1;
        if (setup.workers == 0) setup.elastic = false;
        return setup;
      },
      element(0, 1, 2, 2, 3), element(true, true, false), element(0, 0, 0, 1, 2, 2, 3),
      element(0, 0, 0, 1, 2, 3), element(0, 0, 0, 0, 1, 2), element(0, 0, 0, 1, 2),
      element(0, 1, 2, 3), element(false, false, true), element(false, false, false, true),
      element(false, false, false, true), element(false, true, true));
}

}  // namespace

const char* Name(Step step) {
  for (const Entry& entry : kSteps) {
    if (entry.step == step) return entry.name;
  }
  return "?";
}

rc::Gen<History> Histories() {
  static const std::vector<Step> kWeighted = Weighted();
  // RapidCheck narrows ranges with the size, which shall only tell how long a history is.
  const auto number = rc::gen::resize(
      rc::kNominalSize, rc::gen::inRange<int>(0, static_cast<int>(kWeighted.size()) * 64));
  // Each history leaves out about half of what can happen ("swarm testing"): so it meets the same
  // few things often and in many orders.
  const auto left_out = rc::gen::noShrink(rc::gen::resize(
      rc::kNominalSize,
      rc::gen::container<std::vector<bool>>(kSteps.size(), rc::gen::arbitrary<bool>())));
  const auto ops = rc::gen::apply(
      [](const std::vector<bool>& left_out, const std::vector<int>& numbers) {
        std::vector<Op> result;
        result.reserve(numbers.size());
        for (int number : numbers) {
          const Step step = kWeighted[number / 64];
          const bool ordinary = step == Step::kPass || step == Step::kSettle || step == Step::kAll;
          if (ordinary || !left_out[static_cast<size_t>(step)])
            result.push_back({step, number % 64});
        }
        return result;
      },
      left_out, rc::gen::container<std::vector<int>>(number));
  return rc::gen::apply(
      [](const Setup& setup, std::vector<Op> ops) {
        return History{setup, std::move(ops)};
      },
      Setups(), ops);
}

std::string Describe(const Setup& setup) {
  static constexpr const char* kPolicies[] = {"OnFailure", "Never", "ExitCode", "Always"};
  static constexpr const char* kClean[] = {"not set", "All", "Running", "None"};
  std::string text = setup.master ? "Master + " : "";
  text += std::to_string(setup.workers) + " Workers, restartPolicy " + kPolicies[setup.policy];
  if (setup.backoff > 0) text += ", backoffLimit " + std::to_string(setup.backoff - 1);
  if (setup.deadline > 0) text += ", deadline " + std::to_string(setup.deadline);
  if (setup.ttl > 0) text += ", ttl " + std::to_string(setup.ttl);
  text += std::string(", cleanPodPolicy ") + kClean[setup.clean];
  if (setup.job_scope) text += ", restartScope Job";
  if (setup.elastic) text += ", elastic";
  if (setup.service_per_replica) text += ", a Service each";
  if (setup.runs) text += ", runs already";
  return text;
}

// Also in the form that a regression test is written in.
std::ostream& operator<<(std::ostream& out, const History& history) {
  const Setup& s = history.setup;
  out << Describe(s) << "\n  {{" << s.workers << ", " << s.master << ", " << s.policy << ", "
      << s.backoff << ", " << s.deadline << ", " << s.ttl << ", " << s.clean << ", " << s.job_scope
      << ", " << s.elastic << ", " << s.service_per_replica << ", " << s.runs << "}, {";
  for (const Op& op : history.ops) {
    out << (&op == history.ops.data() ? "" : ", ") << "{Step::k" << Name(op.step) << ", " << op.arg
        << "}";
  }
  return out << "}}";
}

}  // namespace model
