#include "runtime/unanswered.h"

#include <gtest/gtest.h>

#include <memory>

#include "core/draft.h"
#include "core/encode.h"

namespace runtime {
namespace {

using core::Kind;

core::Snapshot Before() {
  auto job = std::make_shared<core::Job>();
  job->key = {"ns", "job"};
  job->uid = "job-uid";
  job->resource_version = "1";
  core::Snapshot snapshot;
  snapshot.job = job;
  return snapshot;
}

core::Snapshot WithStatus(const core::JobStatus& status) {
  core::Snapshot snapshot = Before();
  core::Job job = *snapshot.job;
  job.status = status;
  job.resource_version = "2";
  snapshot.job = std::make_shared<core::Job>(job);
  return snapshot;
}

core::JobStatus Succeeded(core::TimePoint at) {
  core::JobStatus status;
  status.conditions = {{"Succeeded", true, "PyTorchJobSucceeded", "done", at, at}};
  status.summary = "1/1";
  return status;
}

core::WriteStatus Write(const core::JobStatus& status) {
  const core::Json patch =
      core::MergePatch(core::EncodeStatus({}, true), core::EncodeStatus(status, true));
  return {core::Dump({{"metadata", {{"resourceVersion", "1"}}}, {"status", patch}}),
          {core::Transition::kSuccessful},
          {{false, "PyTorchJobSucceeded", "done"}}};
}

core::Snapshot WithPod(bool terminating = false) {
  core::Snapshot snapshot = Before();
  auto pod = std::make_shared<core::Pod>();
  pod->name = "job-master-0";
  pod->uid = "pod-uid";
  if (terminating) pod->deletion = core::TimePoint{};
  snapshot.pods = {pod};
  return snapshot;
}

const core::TimePoint kNoon{std::chrono::seconds{1767225600}};

TEST(UnansweredTest, AStatusIsToldOnceItShows) {
  Unanswered unanswered;
  unanswered.Add({Write(Succeeded(kNoon))});
  EXPECT_TRUE(unanswered.Take(Before()).events.empty());
  const auto shown = unanswered.Take(WithStatus(Succeeded(kNoon)));
  ASSERT_EQ(shown.events.size(), 1u);
  EXPECT_EQ(shown.events[0].reason, "PyTorchJobSucceeded");
  EXPECT_EQ(shown.transitions, std::vector{core::Transition::kSuccessful});
  EXPECT_TRUE(unanswered.Take(WithStatus(Succeeded(kNoon))).events.empty());
}

TEST(UnansweredTest, OfSeveralTriesTheOneThatWasAppliedIsTold) {
  Unanswered unanswered;
  unanswered.Add({Write(Succeeded(kNoon))});
  unanswered.Add({Write(Succeeded(kNoon + std::chrono::seconds{5}))});
  EXPECT_EQ(unanswered.Take(WithStatus(Succeeded(kNoon))).events.size(), 1u);
  EXPECT_TRUE(
      unanswered.Take(WithStatus(Succeeded(kNoon + std::chrono::seconds{5}))).events.empty());
}

TEST(UnansweredTest, AnAnsweredWriteLeavesNothingToTell) {
  Unanswered unanswered;
  unanswered.Add({Write(Succeeded(kNoon)), core::Create{Kind::kPod, "job-master-0", ""},
                  core::Delete{Kind::kPod, "job-worker-0", "gone-uid", {}}});
  unanswered.StatusWritten();
  unanswered.Answered(true, Kind::kPod, "job-master-0");
  unanswered.Answered(false, Kind::kPod, "job-worker-0");
  core::Snapshot snapshot = WithPod();
  snapshot.job = WithStatus(Succeeded(kNoon)).job;
  const auto shown = unanswered.Take(snapshot);
  EXPECT_TRUE(shown.events.empty());
  EXPECT_TRUE(shown.transitions.empty());
  EXPECT_TRUE(shown.done.empty());
}

TEST(UnansweredTest, ACreatedPodIsToldWhenItExists) {
  Unanswered unanswered;
  unanswered.Add({core::Create{Kind::kPod, "job-master-0", ""}});
  EXPECT_TRUE(unanswered.Take(Before()).done.empty());
  EXPECT_TRUE(unanswered.Take(WithPod(true)).done.empty()) << "a predecessor on its way out";
  const auto shown = unanswered.Take(WithPod());
  ASSERT_EQ(shown.done.size(), 1u);
  EXPECT_TRUE(shown.done[0].created);
  EXPECT_EQ(shown.done[0].name, "job-master-0");
  EXPECT_TRUE(unanswered.Take(WithPod()).done.empty());
}

TEST(UnansweredTest, ADeletedPodIsToldWhenItTerminatesOrIsGone) {
  for (const core::Snapshot& after : {WithPod(true), Before()}) {
    Unanswered unanswered;
    unanswered.Add({core::Delete{Kind::kPod, "job-master-0", "pod-uid", {}}});
    EXPECT_TRUE(unanswered.Take(WithPod()).done.empty());
    const auto shown = unanswered.Take(after);
    ASSERT_EQ(shown.done.size(), 1u);
    EXPECT_FALSE(shown.done[0].created);
  }
}

TEST(UnansweredTest, OfAJobThatIsGoneOnlyItsOwnDeletionIsTold) {
  Unanswered unanswered;
  unanswered.Add({core::Create{Kind::kPod, "job-master-0", ""},
                  core::Delete{Kind::kJob, "job", "job-uid", {}}});
  const auto shown = unanswered.TakeGone();
  ASSERT_EQ(shown.done.size(), 1u);
  EXPECT_EQ(shown.done[0].kind, Kind::kJob);
  EXPECT_TRUE(unanswered.TakeGone().done.empty());
}

}  // namespace
}  // namespace runtime
