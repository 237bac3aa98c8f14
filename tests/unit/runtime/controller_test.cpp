#include "runtime/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>

#include <set>

#include "runtime/fake_api.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;
using base::ErrorCode;
using core::Json;
using core::Kind;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

// The memory of one process of the operator; the API server outlives it.
struct Incarnation {
  Incarnation(FakeApi& api, core::TimePoint& now)
      : clock([&now] { return now; }),
        cache(clock),
        queue(clock),
        metrics("test"),
        events(api, clock, [this] { metrics.EventDropped(); }),
        log(std::make_shared<spdlog::logger>("test",
                                             std::make_shared<spdlog::sinks::null_sink_mt>())),
        controller({}, api, cache, queue, events, metrics, clock, log) {
    api.List(cache);
    for (const core::JobKey& key : cache.Jobs()) queue.Add(key, Priority::kBacklog);
  }

  Clock clock;
  Cache cache;
  WorkQueue queue;
  Metrics metrics;
  EventRecorder events;
  std::shared_ptr<spdlog::logger> log;
  Controller controller;
};

// An API server and a process that serves it, under one clock.
struct World {
  ~World() { WaitForEvents(); }

  // A job of one Master and `workers` Workers, as a user makes it.
  void MakeJob(int workers = 2, const std::string& name = "mnist") {
    auto replica = [](int count) {
      return Json{
          {"replicas", count},
          {"restartPolicy", "OnFailure"},
          {"template",
           {{"spec",
             {{"containers", Json::array({{{"name", "pytorch"}, {"image", "training"}}})}}}}}};
    };
    Json replicas{{"Master", replica(1)}};
    if (workers > 0) replicas["Worker"] = replica(workers);
    api_.Put(Kind::kJob, "ns",
             {{"apiVersion", "kubeflow.org/v1"},
              {"kind", "PyTorchJob"},
              {"metadata", {{"name", name}, {"generation", 1}}},
              {"spec", {{"pytorchReplicaSpecs", replicas}, {"runPolicy", Json::object()}}}});
  }

  void SetPod(const std::string& name, const std::string& phase) {
    Json pod = *api_.Find(Kind::kPod, "ns", name);
    pod["status"]["phase"] = phase;
    api_.Put(Kind::kPod, "ns", std::move(pod));
  }

  // Passes and watch events until nothing is left to do.
  void Settle() {
    for (int i = 0; i < 100; ++i) {
      api_.Sync(process_->cache);
      Add();
      auto key = process_->queue.TryTake();
      if (!key) return;
      const auto before = api_.writes.size();
      process_->controller.Pass(*key, {});
      process_->queue.Done(*key);
      if (api_.writes.size() == before && i > 0 && process_->queue.depth() == 0) return;
    }
    ADD_FAILURE() << "it never settles";
  }
  void Add() {
    for (const core::JobKey& key : process_->cache.Jobs()) {
      process_->queue.Add(key, Priority::kNormal);
    }
  }
  void PassOnce(const std::string& name = "mnist") {
    api_.Sync(process_->cache);
    process_->controller.Pass({"ns", name}, {});
  }
  void Restart() {
    process_.reset();
    process_.emplace(api_, now_);
  }
  void WaitForEvents() {
    while (process_ && process_->events.pending() > 0) std::this_thread::yield();
  }

  Json Status(const std::string& name = "mnist") {
    return (*api_.Find(Kind::kJob, "ns", name))["status"];
  }
  Json Condition(const std::string& type) {
    const Json status = Status();
    for (const Json& condition : status["conditions"]) {
      if (condition["type"] == type) return condition;
    }
    return {};
  }
  std::vector<std::string> EventReasons() {
    WaitForEvents();
    std::vector<std::string> reasons;
    for (const Json& event : api_.events) reasons.push_back(event["reason"]);
    return reasons;
  }

  FakeApi api_;
  core::TimePoint now_{1767225600s};
  std::optional<Incarnation> process_{std::in_place, api_, now_};
};

class ControllerTest : public testing::Test, protected World {};

const std::vector<std::string> kAllPods{"mnist-master-0", "mnist-worker-0", "mnist-worker-1"};

base::Error Quota() {
  return {ErrorCode::kForbidden, "pods \"x\" is forbidden: exceeded quota: small", {}};
}

TEST_F(ControllerTest, ANewJobGetsStatusThenServiceThenMasterThenWorkers) {
  MakeJob();
  Settle();
  ASSERT_THAT(api_.writes, SizeIs(5));
  EXPECT_EQ(api_.writes[0], "patch-status mnist");
  EXPECT_EQ(api_.writes[1], "create Service mnist-master-0");
  EXPECT_EQ(api_.writes[2], "create Pod mnist-master-0");
  EXPECT_THAT((std::set<std::string>{api_.writes[3], api_.writes[4]}),
              ElementsAre("create Pod mnist-worker-0", "create Pod mnist-worker-1"));
  EXPECT_THAT(EventReasons(),
              UnorderedElementsAre("SuccessfulCreatePod", "SuccessfulCreatePod",
                                   "SuccessfulCreatePod", "SuccessfulCreateService"));
  EXPECT_THAT(process_->metrics.Render(),
              HasSubstr("training_operator_jobs_created_total{framework=\"pytorch\","
                        "job_namespace=\"ns\"} 1"));
}

TEST_F(ControllerTest, LookingAgainWritesNothing) {
  MakeJob();
  Settle();
  const auto writes = api_.writes.size();
  Settle();
  Restart();
  Settle();
  EXPECT_EQ(api_.writes.size(), writes);
}

TEST_F(ControllerTest, ItWaitsForItsOwnWrites) {
  MakeJob();
  PassOnce();
  const auto calls = api_.calls.size();
  process_->controller.Pass({"ns", "mnist"}, {});  // the watches have told nothing yet
  EXPECT_EQ(api_.calls.size(), calls);
  now_ += 11s;  // then it asks and goes on: what exists is found to be ours
  process_->controller.Pass({"ns", "mnist"}, {});
  EXPECT_EQ(api_.Count("get PyTorchJob mnist"), 1);
  EXPECT_EQ(api_.Names(Kind::kPod), kAllPods);
}

TEST_F(ControllerTest, AQuotaStopsTheBatchAndIsInTheStatusWithinThePass) {
  MakeJob(50);
  api_.fault = [](const std::string& call, bool&) -> std::optional<base::Error> {
    if (call.starts_with("create Pod")) return Quota();
    return std::nullopt;
  };
  PassOnce();
  int tried = 0;
  for (const std::string& call : api_.calls) tried += call.starts_with("create Pod");
  EXPECT_EQ(tried, 1);
  EXPECT_EQ(Condition("ReplicaFailure")["status"], "True");
  EXPECT_EQ(Condition("ReplicaFailure")["reason"], "FailedCreatePod");
  EXPECT_THAT(Condition("ReplicaFailure")["message"].get<std::string>(),
              HasSubstr("exceeded quota: small"));
  // The same refusal again writes nothing; when it ends, the condition does.
  const auto writes = api_.writes.size();
  now_ += 2s;
  PassOnce();
  EXPECT_EQ(api_.writes.size(), writes);
  api_.fault = nullptr;
  now_ += 120s;
  Settle();
  EXPECT_THAT(api_.Names(Kind::kPod), SizeIs(51));
  EXPECT_EQ(Condition("ReplicaFailure")["status"], "False");
}

TEST_F(ControllerTest, CreatesStartSlowlyAndStopAtTheFirstRefusal) {
  MakeJob(50);
  std::atomic<int> pods{0};
  api_.fault = [&](const std::string& call, bool&) -> std::optional<base::Error> {
    if (call.starts_with("create Pod") && ++pods > 10) return Quota();
    return std::nullopt;
  };
  PassOnce();
  // Batches of 1, 2, 4, 8: the quota is met in the fourth, the fifth never begins.
  EXPECT_EQ(pods, 15);
  EXPECT_THAT(api_.Names(Kind::kPod), SizeIs(10));
}

TEST_F(ControllerTest, ATakenNameIsToldWithItsHolder) {
  MakeJob();
  api_.Put(
      Kind::kPod, "ns",
      {{"metadata",
        {{"name", "mnist-worker-1"},
         {"ownerReferences",
          Json::array(
              {{{"controller", true}, {"kind", "ReplicaSet"}, {"name", "web"}, {"uid", "u"}}})}}}});
  PassOnce();
  EXPECT_THAT(Condition("ReplicaFailure")["message"].get<std::string>(),
              HasSubstr("held by Pod ns/mnist-worker-1, controlled by ReplicaSet web (uid u)"));
  EXPECT_EQ(api_.Find(Kind::kPod, "ns", "mnist-worker-1")->value("spec", Json()), Json());
  api_.Erase(Kind::kPod, "ns", "mnist-worker-1");
  now_ += 60s;
  Settle();
  EXPECT_EQ(api_.Names(Kind::kPod), kAllPods);
}

TEST_F(ControllerTest, ALostReplyMakesNoSecondPodAndOneEvent) {
  MakeJob();
  std::set<std::string> lost;
  api_.fault = [&](const std::string& call, bool& applied) -> std::optional<base::Error> {
    if (call.starts_with("get") || call.find("event") != std::string::npos ||
        !lost.insert(call).second) {
      return std::nullopt;
    }
    applied = true;
    return base::Error{ErrorCode::kTimeout, "no reply", {}};
  };
  for (int i = 0; i < 20; ++i) {
    now_ += 10s;
    Settle();
  }
  EXPECT_EQ(api_.Names(Kind::kPod), kAllPods);
  for (const std::string& pod : kAllPods) {
    EXPECT_EQ(std::count(api_.writes.begin(), api_.writes.end(), "create Pod " + pod), 1) << pod;
  }
}

TEST_F(ControllerTest, AConflictEndsThePassWithoutEvents) {
  MakeJob();
  api_.Sync(process_->cache);
  Json job = *api_.Find(Kind::kJob, "ns", "mnist");
  job["metadata"]["annotations"]["touched"] = "by a user; the watch has not told";
  api_.Put(Kind::kJob, "ns", std::move(job));
  process_->controller.Pass({"ns", "mnist"}, {});
  EXPECT_THAT(api_.writes, IsEmpty());
  EXPECT_THAT(EventReasons(), IsEmpty());
  EXPECT_THAT(process_->metrics.Render(), Not(HasSubstr("training_operator_jobs_created_total{")));
  // The watch is still late: the object is fetched once.
  process_->controller.Pass({"ns", "mnist"}, {});
  EXPECT_EQ(api_.Count("get PyTorchJob mnist"), 1);
  EXPECT_EQ(api_.Names(Kind::kPod), kAllPods) << testing::PrintToString(api_.calls);
}

TEST_F(ControllerTest, LabelsRemovedWhileNoOperatorRanArePutBack) {
  MakeJob();
  Settle();
  Json pod = *api_.Find(Kind::kPod, "ns", "mnist-worker-0");
  const Json labels = pod["metadata"]["labels"];
  pod["metadata"]["labels"] = Json::object();
  api_.Put(Kind::kPod, "ns", std::move(pod));
  api_.writes.clear();
  Restart();
  PassOnce();
  EXPECT_THAT(api_.writes, ElementsAre("patch Pod mnist-worker-0"));
  EXPECT_EQ((*api_.Find(Kind::kPod, "ns", "mnist-worker-0"))["metadata"]["labels"], labels);
}

TEST_F(ControllerTest, LabelsThatWereRemovedArePutBackAndNoPodIsMade) {
  MakeJob();
  Settle();
  api_.writes.clear();
  Json pod = *api_.Find(Kind::kPod, "ns", "mnist-worker-0");
  pod["metadata"]["labels"] = Json::object();
  api_.Put(Kind::kPod, "ns", std::move(pod));
  Settle();
  EXPECT_THAT(api_.writes, Contains("patch Pod mnist-worker-0"));
  EXPECT_THAT(api_.writes, Not(Contains(HasSubstr("create"))));
  EXPECT_FALSE(process_->cache.Look({"ns", "mnist"}).outside_watch);
}

TEST_F(ControllerTest, AnOldCrdIsNoticedOnceAndItsReplacementToo) {
  api_.drop_own_fields = true;
  MakeJob();
  Settle();
  EXPECT_EQ(std::ranges::count(EventReasons(), "CRDOutdated"), 1);
  EXPECT_THAT(process_->metrics.Render(), HasSubstr("training_operator_crd_outdated 1"));
  const auto writes = api_.writes.size();
  Settle();
  EXPECT_EQ(api_.writes.size(), writes) << "it compares what the CRD drops";
  api_.drop_own_fields = false;
  for (const std::string& pod : kAllPods) SetPod(pod, "Running");
  now_ += 60s;
  Settle();
  EXPECT_THAT(process_->metrics.Render(), HasSubstr("training_operator_crd_outdated 0"));
  EXPECT_EQ(std::ranges::count(EventReasons(), "CRDOutdated"), 1);
}

TEST_F(ControllerTest, AnUnwritableStatusIsTriedEverMoreRarely) {
  MakeJob();
  api_.fault = [](const std::string& call, bool&) -> std::optional<base::Error> {
    if (call.starts_with("patch-status")) return base::Error{ErrorCode::kInvalid, "no", {}};
    return std::nullopt;
  };
  api_.Sync(process_->cache);
  process_->queue.Add({"ns", "mnist"}, Priority::kNormal);
  const auto end = now_ + 1h;
  while (now_ < end) {
    while (auto key = process_->queue.TryTake()) {
      process_->controller.Pass(*key, {});
      process_->queue.Done(*key);
    }
    now_ += 1s;
  }
  EXPECT_LT(api_.Count("patch-status mnist"), 35);
  EXPECT_GT(api_.Count("patch-status mnist"), 15);
}

// A job that fails once and succeeds. `between` is called after each step.
void LiveAJobsLife(World& world, const std::function<void()>& between) {
  world.MakeJob();
  between();
  for (const std::string& pod : kAllPods) world.SetPod(pod, "Running");
  world.SetPod("mnist-worker-1", "Failed");
  world.now_ += 60s;
  between();
  world.SetPod("mnist-master-0", "Succeeded");
  world.now_ += 60s;
  between();
}

// Kills the process before each write, starts a new one, and compares what is there in the end with
// a life that was not disturbed.
TEST(ControllerCrashTest, ACrashBetweenAnyTwoWritesIsHarmless) {
  World undisturbed;
  LiveAJobsLife(undisturbed, [&] { undisturbed.Settle(); });
  const std::size_t all = undisturbed.api_.writes.size();
  ASSERT_GE(all, 9u);
  auto sorted = [](std::vector<std::string> writes) {
    std::sort(writes.begin(), writes.end());
    return writes;
  };

  for (std::size_t crash = 0; crash < all; ++crash) {
    World world;
    std::size_t begun = 0;
    bool dead = false;
    world.api_.fault = [&](const std::string& call, bool&) -> std::optional<base::Error> {
      if (call.starts_with("get") || call.find("event") != std::string::npos) return std::nullopt;
      if (!dead && begun++ != crash) return std::nullopt;
      dead = true;
      return base::Error{ErrorCode::kCancelled, "killed", {}};
    };
    LiveAJobsLife(world, [&] {
      world.Settle();
      if (!dead) return;
      dead = false;
      world.Restart();
      world.now_ += 1s;
      world.Settle();
    });
    EXPECT_EQ(sorted(world.api_.writes), sorted(undisturbed.api_.writes)) << crash;
    const Json status = world.Status(), wanted = undisturbed.Status();
    EXPECT_EQ(status["replicaStatuses"], wanted["replicaStatuses"]) << crash;
    EXPECT_EQ(status["restartCount"], wanted["restartCount"]) << crash;
    EXPECT_EQ(status["summary"], wanted["summary"]) << crash;
    EXPECT_EQ(status["conditions"].back()["type"], "Succeeded") << crash;
  }
}

}  // namespace
}  // namespace runtime
