// behaviour.md section 6: events of children.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit.h"

namespace core::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<Done> Pods(bool created, int count) {
  std::vector<Done> done;
  for (int i = 0; i < count; ++i) {
    done.push_back({created, Kind::kPod, "mnist-worker-" + std::to_string(i)});
  }
  return done;
}

TEST(Events, NothingDoneNothingSaid) { EXPECT_THAT(ChildEvents({}), IsEmpty()); }

TEST(Events, OneForEachUpToTen) {
  EXPECT_THAT(Lines(ChildEvents({{true, Kind::kService, "mnist-master-0"},
                                 {true, Kind::kPod, "mnist-master-0"},
                                 {false, Kind::kPod, "mnist-worker-3"}})),
              ElementsAre("Normal SuccessfulCreatePod: Created pod: mnist-master-0",
                          "Normal SuccessfulCreateService: Created service: mnist-master-0",
                          "Normal SuccessfulDeletePod: Deleted pod: mnist-worker-3"));
  EXPECT_THAT(ChildEvents(Pods(true, 10)), ::testing::SizeIs(10));
}

TEST(Events, AboveTenTheyAreSummedUp) {
  EXPECT_THAT(Lines(ChildEvents(Pods(true, 11))),
              ElementsAre("Normal SuccessfulCreatePod: Created 11 pods: mnist-worker-0 … "
                          "mnist-worker-10"));
  EXPECT_THAT(Lines(ChildEvents(Pods(false, 500))),
              ElementsAre("Normal SuccessfulDeletePod: Deleted 500 pods: mnist-worker-0 … "
                          "mnist-worker-499"));
}

TEST(Events, EachKindIsSummedUpForItself) {
  std::vector<Done> done = Pods(true, 12);
  done.push_back({true, Kind::kService, "mnist-master-0"});
  EXPECT_THAT(Lines(ChildEvents(done)),
              ElementsAre("Normal SuccessfulCreatePod: Created 12 pods: mnist-worker-0 … "
                          "mnist-worker-11",
                          "Normal SuccessfulCreateService: Created service: mnist-master-0"));
}

TEST(Events, OfOtherKinds) {
  EXPECT_THAT(Lines(ChildEvents({{false, Kind::kJob, "mnist"},
                                 {true, Kind::kPodGroup, "mnist"},
                                 {true, Kind::kAutoscaler, "mnist"}})),
              ElementsAre("Normal SuccessfulCreatePodGroup: Created PodGroup: mnist",
                          "Normal SuccessfulCreateHorizontalPodAutoscaler: Created "
                          "HorizontalPodAutoscaler: mnist",
                          "Normal SuccessfulDeletePod: Deleted job: mnist"));
}

}  // namespace
}  // namespace core::test
