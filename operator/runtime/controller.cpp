#include "runtime/controller.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/json.h"
#include "runtime/nodes.h"

namespace runtime {
namespace {

using base::ErrorCode;

// How often the world is asked about objects that no watch tells of.
constexpr std::chrono::seconds kOutsideWatchInterval{5};
// How long the watch has to bring what a status write collided with, before it is fetched.
constexpr std::chrono::seconds kConflictWait{1};
// A passing failure of a create is told in the status only when it keeps coming.
constexpr int kTransientTries = 3;
// Decide is asked again at most this often in one pass.
constexpr int kMostRounds = 4;

// While the CRD lacks our fields one of them is sent with every write that happens anyway: the
// reply shows when the CRD has been replaced.
void ProbeCrd(const core::Job& job, core::Plan& plan) {
  for (core::Action& action : plan.actions) {
    auto* write = std::get_if<core::WriteStatus>(&action);
    if (!write) continue;
    core::Json patch = core::Json::parse(write->patch, nullptr, false);
    if (!patch.is_object()) continue;
    patch["status"]["observedGeneration"] = job.generation;
    write->patch = core::Dump(patch);
  }
}

bool Refused(const core::CreateError& error) {
  return !IsTransient(error.code) || error.tries >= kTransientTries;
}

}  // namespace

Controller::Controller(ControllerOptions options, Api& api, Cache& cache, WorkQueue& queue,
                       EventRecorder& events, Metrics& metrics, Clock clock,
                       std::shared_ptr<spdlog::logger> log)
    : options_(std::move(options)),
      api_(api),
      cache_(cache),
      queue_(queue),
      events_(events),
      metrics_(metrics),
      clock_(std::move(clock)),
      log_(std::move(log)),
      runner_(api, cache, clock_, options_.max_in_flight) {}

Controller::~Controller() { Stop(); }

void Controller::Start() {
  if (running_.exchange(true)) return;
  {
    std::lock_guard lock(mutex_);
    memories_.clear();
  }
  for (const core::JobKey& key : cache_.Jobs()) queue_.Add(key, Priority::kBacklog);
  for (int i = 0; i < options_.threads; ++i) {
    workers_.emplace_back([this](std::stop_token stop) { Work(std::move(stop)); });
  }
}

void Controller::Stop() {
  for (std::jthread& worker : workers_) worker.request_stop();
  workers_.clear();
  running_ = false;
}

void Controller::Work(std::stop_token stop) {
  while (auto key = queue_.Take(stop)) {
    try {
      Pass(*key, stop);
    } catch (const std::exception& e) {
      log_->error("job {}/{}: a pass ended by an exception: {}", key->ns, key->name, e.what());
      queue_.Retry(*key);
    }
    queue_.Done(*key);
  }
}

void Controller::Pass(const core::JobKey& key, std::stop_token stop) {
  const core::TimePoint began = clock_();
  const Metrics::PassResult result = RunPass(key, std::move(stop));
  metrics_.Pass(result, std::chrono::duration<double>(clock_() - began).count());
}

Controller::Memory& Controller::MemoryOf(const core::JobKey& key, const std::string& uid) {
  std::lock_guard lock(mutex_);
  Memory& memory = memories_[key];
  if (memory.uid != uid) {
    memory = Memory{};
    memory.uid = uid;
  }
  return memory;
}

Metrics::PassResult Controller::RunPass(const core::JobKey& key, std::stop_token stop) {
  Cache::View view = cache_.Look(key);
  if (!view.snapshot.job) {
    std::lock_guard lock(mutex_);
    if (auto memory = memories_.extract(key)) {
      Tell(key, memory.mapped().uid, memory.mapped().unanswered.TakeGone());
    }
    queue_.LookAgainAt(key, std::nullopt);
    queue_.Forget(key);
    return Metrics::PassResult::kSuccess;
  }
  Memory& memory = MemoryOf(key, view.snapshot.job->uid);
  if (!FreshEnough(*view.snapshot.job, memory)) return Metrics::PassResult::kRequeueAfter;
  if (auto answered = AnswerProbes(key, view); !answered) {
    Complain(key, memory, "look for a pod or Service", answered.error());
    queue_.Retry(key);
    return Metrics::PassResult::kError;
  }
  view = cache_.Look(key);
  if (!view.snapshot.job || view.snapshot.job->uid != memory.uid) {
    queue_.Add(key, Priority::kNormal);
    return Metrics::PassResult::kRequeue;
  }
  std::optional<core::TimePoint> look_again_at;
  switch (Act(view.snapshot, memory, std::move(stop), look_again_at)) {
    case Outcome::End::kStopped:
      return Metrics::PassResult::kRequeue;
    case Outcome::End::kConflict:
      memory.conflict_version = view.snapshot.job->resource_version;
      queue_.LookAgainAt(key, clock_() + kConflictWait);
      return Metrics::PassResult::kRequeue;
    case Outcome::End::kFailed:
      queue_.Retry(key);
      return Metrics::PassResult::kError;
    case Outcome::End::kDone:
      break;
  }
  memory.complained = false;
  if (cache_.Look(key).outside_watch) {
    const core::TimePoint soon = clock_() + kOutsideWatchInterval;
    look_again_at = std::min(look_again_at.value_or(soon), soon);
  }
  queue_.Forget(key);
  queue_.LookAgainAt(key, look_again_at);
  return look_again_at ? Metrics::PassResult::kRequeueAfter : Metrics::PassResult::kSuccess;
}

bool Controller::FreshEnough(const core::Job& job, Memory& memory) {
  bool fetch = !memory.conflict_version.empty() && memory.conflict_version == job.resource_version;
  for (const auto& [kind, version] : memory.written) {
    if (cache_.HasSeen(kind, job.key.ns, version)) continue;
    const core::TimePoint until = memory.written_at + options_.longest_wait;
    if (clock_() < until) {
      queue_.LookAgainAt(job.key, until);
      return false;
    }
    log_->warn("job {}/{}: the watch of {}s is {} s behind a write; going on without it",
               job.key.ns, job.key.name, core::Name(kind), options_.longest_wait.count());
    fetch = true;
  }
  memory.written.clear();
  memory.conflict_version.clear();
  if (fetch) {
    auto reply = api_.Get(core::Kind::kJob, job.key.ns, job.key.name);
    if (reply) {
      if (auto fetched = core::DecodeJob(*reply)) cache_.Learn(std::move(*fetched));
    }
  }
  return true;
}

base::Result<void> Controller::AnswerProbes(const core::JobKey& key, const Cache::View& view) {
  for (const Probe& probe : view.probes) {
    auto reply = api_.Get(probe.kind, key.ns, probe.name);
    if (!reply && reply.error().code != ErrorCode::kNotFound) return reply.error();
    bool found = false;
    if (reply && probe.kind == core::Kind::kPod) {
      auto pod = core::DecodePod(*reply);
      found = pod && pod->uid == probe.uid;
      if (found) cache_.Learn(std::move(*pod));
    } else if (reply) {
      auto service = core::DecodeService(*reply);
      found = service && service->uid == probe.uid;
      if (found) cache_.Learn(std::move(*service));
    }
    if (!found) cache_.LearnGone(key, probe);
  }
  return {};
}

core::Options Controller::OptionsNow() const {
  core::Options options = options_.decide;
  options.crd_outdated = crd_outdated_;
  if (nodes_forbidden_) options.stuck_pod_timeout = core::seconds{0};
  return options;
}

core::Plan Controller::DecideWithNodes(core::Snapshot& snapshot, const core::Options& options) {
  core::Plan plan = core::Decide(snapshot, clock_(), options);
  bool answered = false;
  for (const std::string& name : plan.ask_nodes) {
    if (snapshot.nodes.contains(name)) continue;
    auto state = ReadNode(api_.GetNode(name));
    if (state) {
      snapshot.nodes[name] = *state;
      answered = true;
    } else if (state.error().code == ErrorCode::kForbidden && !nodes_forbidden_.exchange(true)) {
      log_->warn(
          "pods on dead nodes are not replaced (--stuck-pod-timeout): {}; allow the verb "
          "get on nodes to the operator's service account",
          state.error().message);
    }
  }
  if (!answered) return plan;
  return core::Decide(snapshot, clock_(), options);
}

Outcome::End Controller::Act(core::Snapshot& snapshot, Memory& memory, std::stop_token stop,
                             std::optional<core::TimePoint>& look_again_at) {
  const core::JobKey key = snapshot.job->key;
  std::vector<core::Done> done;
  Outcome outcome;
  Tell(key, memory.uid, memory.unanswered.Take(snapshot));
  for (int round = 0; round < kMostRounds; ++round) {
    for (const auto& pod : snapshot.pods) {
      memory.create_errors.erase({core::Kind::kPod, pod->name});
    }
    for (const auto& service : snapshot.services) {
      memory.create_errors.erase({core::Kind::kService, service->name});
    }
    snapshot.create_errors.clear();
    for (const auto& [name, error] : memory.create_errors) {
      if (Refused(error)) snapshot.create_errors.push_back(error);
    }
    snapshot.status_written = memory.status_written;
    const core::Options options = OptionsNow();
    core::Plan plan = DecideWithNodes(snapshot, options);
    if (options.crd_outdated) ProbeCrd(*snapshot.job, plan);
    look_again_at = plan.look_again_at;
    if (!plan.actions.empty()) {
      log_->debug("job {}/{}: {} actions: {}", key.ns, key.name, plan.actions.size(), plan.why);
    }
    outcome = runner_.Run(plan, snapshot, stop);
    const bool news = Remember(memory, outcome);
    std::move(outcome.done.begin(), outcome.done.end(), std::back_inserter(done));
    for (const core::Event& event : outcome.events) events_.Record(key, memory.uid, event);
    for (core::Transition transition : outcome.transitions) {
      metrics_.JobTransition(key.ns, transition);
    }
    if (outcome.own_fields_kept) NoteOwnFields(*snapshot.job, *outcome.own_fields_kept);
    if (outcome.end != Outcome::End::kDone || !(news || outcome.found)) break;
  }
  for (const core::Event& event : core::ChildEvents(done)) {
    events_.Record(key, memory.uid, event);
  }
  if (outcome.end == Outcome::End::kFailed) Complain(key, memory, outcome.at, outcome.error);
  return outcome.end;
}

bool Controller::Remember(Memory& memory, const Outcome& outcome) const {
  for (const auto& [kind, version] : outcome.written) {
    std::string& newest = memory.written[kind];
    if (Revision(version) > Revision(newest)) newest = version;
    memory.written_at = clock_();
  }
  if (outcome.wrote_status) {
    memory.status_written = clock_();
    memory.unanswered.StatusWritten();
  }
  for (const auto& name : outcome.created) memory.create_errors.erase(name);
  for (const core::Done& one : outcome.done) {
    memory.unanswered.Answered(one.created, one.kind, one.name);
  }
  memory.unanswered.Add(outcome.unanswered);
  bool news = false;
  for (const core::CreateError& error : outcome.refused) {
    auto [it, added] = memory.create_errors.try_emplace({error.kind, error.name}, error);
    core::CreateError& kept = it->second;
    if (!added) {
      const int tries = kept.tries + 1;
      if (kept.code != error.code || kept.message != error.message) added = true;
      kept = error;
      kept.tries = tries;
    }
    if (added && Refused(kept)) news = true;
  }
  return news;
}

void Controller::Tell(const core::JobKey& key, const std::string& uid,
                      const Unanswered::Shown& shown) {
  for (const core::Event& event : shown.events) events_.Record(key, uid, event);
  for (core::Transition transition : shown.transitions) metrics_.JobTransition(key.ns, transition);
  for (const core::Event& event : core::ChildEvents(shown.done)) events_.Record(key, uid, event);
}

void Controller::NoteOwnFields(const core::Job& job, bool kept) {
  if (kept == !crd_outdated_.exchange(!kept)) return;
  metrics_.CrdOutdated(!kept);
  if (kept) {
    log_->info("the installed CRD keeps this operator's status fields again");
    return;
  }
  const std::string message =
      "The installed CRD pytorchjobs.kubeflow.org is older than this operator: it drops the "
      "status fields summary, restartCount, lastFailure and others. Jobs run as before; apply the "
      "operator's own CRD to see them.";
  log_->warn("{}", message);
  events_.Record(job.key, job.uid, {true, "CRDOutdated", message});
}

void Controller::Complain(const core::JobKey& key, Memory& memory, const std::string& at,
                          const base::Error& error) {
  // Said once; what keeps failing is looked at ever more rarely.
  const auto level = memory.complained ? spdlog::level::debug : spdlog::level::warn;
  memory.complained = true;
  log_->log(level, "job {}/{}: could not {}: {}; trying again", key.ns, key.name, at,
            error.message);
}

}  // namespace runtime
