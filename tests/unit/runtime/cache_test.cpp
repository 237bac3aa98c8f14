#include "runtime/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace runtime {
namespace {

using namespace std::chrono_literals;
using core::JobKey;
using core::Kind;
using core::ReplicaType;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

core::Job MakeJob(const std::string& name, const std::string& uid, int version, int workers = 2) {
  core::Job job;
  job.key = {"ns", name};
  job.uid = uid;
  job.resource_version = std::to_string(version);
  job.generation = 1;
  job.spec.replicas[ReplicaType::kMaster].replicas = 1;
  job.spec.replicas[ReplicaType::kWorker].replicas = workers;
  return job;
}

core::Pod MakePod(const std::string& name, const std::string& uid, int version,
                  const std::string& owner_uid) {
  core::Pod pod;
  pod.ns = "ns";
  pod.name = name;
  pod.uid = uid;
  pod.resource_version = std::to_string(version);
  pod.owner_uid = owner_uid;
  pod.owner_kind = "PyTorchJob";
  pod.owner_name = "mnist";
  pod.job_label = "mnist";
  return pod;
}

core::Service MakeService(const std::string& name, const std::string& uid, int version,
                          const std::string& owner_uid) {
  core::Service service;
  service.ns = "ns";
  service.name = name;
  service.uid = uid;
  service.resource_version = std::to_string(version);
  service.owner_uid = owner_uid;
  return service;
}

class CacheTest : public testing::Test {
 protected:
  CacheTest() { cache_.Apply("", MakeJob("mnist", "j1", 10), false); }

  Cache::View Look(const std::string& name = "mnist") { return cache_.Look({"ns", name}); }

  core::TimePoint now_{1000s};
  Cache cache_{[this] { return now_; }};
};

const Touched kMnist{{"ns", "mnist"}, Priority::kNormal};

TEST_F(CacheTest, ChildrenBelongToTheJobOfTheirOwnersUid) {
  EXPECT_THAT(cache_.Apply("", MakePod("mnist-master-0", "p1", 11, "j1"), false),
              ElementsAre(kMnist));
  EXPECT_THAT(cache_.Apply("", MakeService("mnist-master-0", "s1", 12, "j1"), false),
              ElementsAre(kMnist));
  cache_.Apply("", MakePod("mnist-worker-0", "p2", 13, "other"), false);
  EXPECT_THAT(Look().snapshot.pods, SizeIs(1));
  EXPECT_EQ(Look().snapshot.pods[0]->uid, "p1");
  EXPECT_THAT(Look().snapshot.services, SizeIs(1));
  EXPECT_FALSE(Look("other").snapshot.job);
}

TEST_F(CacheTest, AUsersChangeIsUrgentAndOurOwnStatusWriteIsNot) {
  EXPECT_THAT(cache_.Apply("", MakeJob("new", "j2", 11), false),
              ElementsAre(Touched{{"ns", "new"}, Priority::kUrgent}));
  EXPECT_THAT(cache_.Apply("", MakeJob("mnist", "j1", 12), false), ElementsAre(kMnist));
  core::Job edited = MakeJob("mnist", "j1", 13);
  edited.generation = 2;
  EXPECT_THAT(cache_.Apply("", edited, false),
              ElementsAre(Touched{{"ns", "mnist"}, Priority::kUrgent}));
  EXPECT_THAT(
      cache_.Replace("", std::vector{MakeJob("mnist", "j1", 13), MakeJob("b", "j3", 14)}, "15"),
      ElementsAre(Touched{{"ns", "b"}, Priority::kBacklog},
                  Touched{{"ns", "new"}, Priority::kBacklog}));
}

TEST_F(CacheTest, AHolderOfANeededNameIsToldAndItsEndWakesTheJob) {
  core::Pod foreign = MakePod("mnist-worker-1", "p1", 11, "j0");
  foreign.owner_name = "older";
  foreign.job_label = "older";
  EXPECT_THAT(cache_.Apply("", foreign, false), ElementsAre(kMnist));
  cache_.Apply("", MakePod("mnist-worker-2", "p2", 12, "j0"), false);   // beyond the replicas
  cache_.Apply("", MakePod("mnist-worker-01", "p3", 13, "j0"), false);  // not a name of ours
  cache_.Apply("", MakeService("mnist-master-0", "s1", 14, ""), false);
  auto holders = Look().snapshot.holders;
  ASSERT_THAT(holders, SizeIs(2));
  EXPECT_EQ(holders[0].description, "Service ns/mnist-master-0, which has no controller");
  EXPECT_EQ(holders[1].kind, Kind::kPod);
  EXPECT_EQ(holders[1].description,
            "Pod ns/mnist-worker-1, controlled by PyTorchJob older (uid j0)");
  EXPECT_THAT(cache_.Apply("", foreign, true), ElementsAre(kMnist));
  EXPECT_THAT(Look().snapshot.holders, SizeIs(1));
}

TEST_F(CacheTest, HugeReplicaCountsCostNothing) {
  cache_.Apply("", MakeJob("mnist", "j1", 11, 2000000000), false);
  cache_.Apply("", MakePod("mnist-worker-1999999999", "p", 12, "x"), false);
  EXPECT_THAT(Look().snapshot.holders, SizeIs(1));
}

TEST_F(CacheTest, APodThatWasSeenEndingDepartsAtOnce) {
  core::Pod pod = MakePod("mnist-worker-0", "p1", 11, "j1");
  pod.phase = core::PodPhase::kFailed;
  cache_.Apply("", pod, false);
  cache_.Apply("", pod, true);
  auto view = Look();
  EXPECT_THAT(view.probes, IsEmpty());
  ASSERT_THAT(view.snapshot.departed, SizeIs(1));
  EXPECT_EQ(view.snapshot.departed[0].pod->uid, "p1");
  EXPECT_EQ(view.snapshot.departed[0].gone, now_);
  // Until its successor comes.
  cache_.Apply("", MakePod("mnist-worker-0", "p2", 20, "j1"), false);
  EXPECT_THAT(Look().snapshot.departed, IsEmpty());
}

TEST_F(CacheTest, DeparturesEndWithTheJobOrItsWork) {
  core::Pod pod = MakePod("mnist-worker-0", "p1", 11, "j1");
  pod.deletion = now_;
  cache_.Apply("", pod, false);
  cache_.Apply("", pod, true);
  EXPECT_THAT(Look().snapshot.departed, SizeIs(1));
  core::Job finished = MakeJob("mnist", "j1", 12);
  finished.status.conditions = {{"Succeeded", true, "", "", {}, {}}};
  cache_.Apply("", finished, false);
  EXPECT_THAT(Look().snapshot.departed, IsEmpty());
}

TEST_F(CacheTest, APodThatVanishedUnseenIsProbed) {
  cache_.Apply("", MakePod("mnist-worker-0", "p1", 11, "j1"), false);
  cache_.Apply("", MakePod("mnist-worker-0", "p1", 12, "j1"), true);
  ASSERT_THAT(Look().probes, SizeIs(1));
  EXPECT_EQ(Look().probes[0].name, "mnist-worker-0");
  cache_.LearnGone({"ns", "mnist"}, Look().probes[0]);
  EXPECT_THAT(Look().probes, IsEmpty());
  EXPECT_THAT(Look().snapshot.departed, SizeIs(1));
}

TEST_F(CacheTest, AVanishedPodThatLivesComesBackAndIsWatchedByGet) {
  cache_.Apply("", MakePod("mnist-worker-0", "p1", 11, "j1"), false);
  cache_.Apply("", MakePod("mnist-worker-0", "p1", 12, "j1"), true);
  core::Pod stripped = MakePod("mnist-worker-0", "p1", 12, "j1");
  stripped.labels_intact = false;
  cache_.Learn(stripped);
  auto view = Look();
  ASSERT_THAT(view.snapshot.pods, SizeIs(1));
  EXPECT_FALSE(view.snapshot.pods[0]->labels_intact);
  EXPECT_THAT(view.snapshot.departed, IsEmpty());
  EXPECT_TRUE(view.outside_watch);
  EXPECT_THAT(view.probes, SizeIs(1));
  // The labels are put back and the watch sees it again.
  cache_.Apply("", MakePod("mnist-worker-0", "p1", 13, "j1"), false);
  EXPECT_FALSE(Look().outside_watch);
  EXPECT_THAT(Look().probes, IsEmpty());
}

TEST_F(CacheTest, APodOutsideTheWatchThatIsGoneDeparts) {
  cache_.Learn(MakePod("mnist-worker-0", "p1", 12, "j1"));
  cache_.LearnGone({"ns", "mnist"}, Look().probes.at(0));
  EXPECT_THAT(Look().snapshot.pods, IsEmpty());
  EXPECT_THAT(Look().snapshot.departed, SizeIs(1));
  EXPECT_THAT(Look().probes, IsEmpty());
}

TEST_F(CacheTest, WhatWeDeletedNeedsNoProbe) {
  for (bool noted_first : {true, false}) {
    const std::string uid = noted_first ? "p1" : "p2";
    cache_.Apply("", MakePod("mnist-worker-0", uid, 11, "j1"), false);
    if (noted_first) cache_.NoteDeleted({"ns", "mnist"}, Kind::kPod, "mnist-worker-0", uid);
    cache_.Apply("", MakePod("mnist-worker-0", uid, 12, "j1"), true);
    if (!noted_first) cache_.NoteDeleted({"ns", "mnist"}, Kind::kPod, "mnist-worker-0", uid);
    EXPECT_THAT(Look().probes, IsEmpty()) << noted_first;
  }
}

TEST_F(CacheTest, ARelistTellsOfWhatVanishedMeanwhile) {
  cache_.Apply("", MakePod("mnist-worker-0", "p1", 11, "j1"), false);
  cache_.Apply("", MakePod("mnist-worker-1", "p2", 12, "j1"), false);
  auto touched = cache_.Replace("", std::vector{MakePod("mnist-worker-1", "p2", 12, "j1")}, "30");
  EXPECT_THAT(touched, ElementsAre(Touched{{"ns", "mnist"}, Priority::kBacklog}));
  EXPECT_THAT(Look().snapshot.pods, SizeIs(1));
  EXPECT_THAT(Look().probes, SizeIs(1));
  EXPECT_THAT(cache_.Replace("", std::vector{MakePod("mnist-worker-1", "p2", 12, "j1")}, "31"),
              IsEmpty());
}

TEST_F(CacheTest, ARelistOfOneNamespaceLeavesTheOthersAlone) {
  core::Job elsewhere = MakeJob("b", "j2", 11);
  elsewhere.key.ns = "elsewhere";
  cache_.Apply("elsewhere", elsewhere, false);
  cache_.Replace("ns", std::vector<core::Job>{}, "20");
  EXPECT_FALSE(Look().snapshot.job);
  EXPECT_TRUE(cache_.Look({"elsewhere", "b"}).snapshot.job);
}

TEST_F(CacheTest, OldNewsAreIgnoredButWakeWhoWaitsForThem) {
  core::Job newer = MakeJob("mnist", "j1", 20);
  newer.generation = 7;
  cache_.Learn(newer);
  EXPECT_THAT(cache_.Apply("", MakeJob("mnist", "j1", 15), false), ElementsAre(kMnist));
  EXPECT_EQ(Look().snapshot.job->generation, 7);
  // An event of a predecessor that had the name.
  cache_.Apply("", MakeJob("mnist", "j0", 9), true);
  EXPECT_TRUE(Look().snapshot.job);
}

TEST_F(CacheTest, AJobThatTheWatchHasPassedDoesNotRiseAgain) {
  cache_.Apply("", MakeJob("mnist", "j1", 12), true);
  cache_.Learn(MakeJob("mnist", "j1", 11));
  EXPECT_FALSE(Look().snapshot.job);
}

TEST_F(CacheTest, HowFarAWatchHasComeIsANumberNotAText) {
  cache_.Advance(Kind::kPod, "", "99");
  EXPECT_TRUE(cache_.HasSeen(Kind::kPod, "ns", "9"));
  EXPECT_FALSE(cache_.HasSeen(Kind::kPod, "ns", "100"));
  cache_.Apply("", MakePod("mnist-worker-0", "p1", 100, "j1"), false);
  EXPECT_TRUE(cache_.HasSeen(Kind::kPod, "ns", "100"));
  EXPECT_FALSE(cache_.HasSeen(Kind::kService, "ns", "1"));
  // A list from a server that lags behind says that the stream begins there.
  cache_.Replace("", std::vector<core::Pod>{}, "50");
  EXPECT_FALSE(cache_.HasSeen(Kind::kPod, "ns", "100"));
}

TEST_F(CacheTest, EachJobThatGoesIsToldOnce) {
  std::vector<std::string> gone;
  cache_.OnJobGone([&](const core::Job& job) { gone.push_back(job.uid); });
  cache_.Apply("", MakeJob("mnist", "j2", 20), false);  // made anew under the name
  cache_.Apply("", MakeJob("mnist", "j2", 21), true);
  cache_.Apply("", MakeJob("mnist", "j2", 21), true);
  EXPECT_THAT(gone, ElementsAre("j1", "j2"));
}

}  // namespace
}  // namespace runtime
