#include "core/conditions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/encode.h"
#include "kit.h"

namespace core::test {
namespace {

std::string Shown(JobStatus status) {
  Order(&status);
  return Conditions(EncodeStatus(status, true));
}

TEST(Conditions, EqualOnesChangeNothing) {
  JobStatus status;
  SetCondition(&status, kRunning, true, "R", "m", kStart);
  const JobStatus before = status;
  SetCondition(&status, kRunning, true, "R", "m", kStart + seconds{60});
  EXPECT_EQ(status, before);
}

TEST(Conditions, ANewMessageKeepsTheTransitionTimeAndThePlace) {
  JobStatus status;
  SetCondition(&status, kCreated, true, "C", "", kStart);
  SetCondition(&status, kRestarting, true, "R", "first", kStart);
  SetCondition(&status, kRunning, false, "X", "", kStart);
  SetCondition(&status, kRestarting, true, "R", "second", kStart + seconds{60});
  EXPECT_EQ(status.conditions[1].message, "second");
  EXPECT_EQ(status.conditions[1].last_transition, kStart);
  EXPECT_EQ(status.conditions[1].last_update, kStart + seconds{60});
}

TEST(Conditions, ANewStatusMovesTheTransitionTimeAndThePlace) {
  JobStatus status;
  SetCondition(&status, kRunning, true, "R", "", kStart);
  SetCondition(&status, kSuspended, false, "S", "", kStart);
  SetCondition(&status, kRunning, false, "X", "", kStart + seconds{60});
  EXPECT_EQ(status.conditions[1].type, kRunning);
  EXPECT_EQ(status.conditions[1].last_transition, kStart + seconds{60});
}

TEST(Conditions, TimesAreWholeSeconds) {
  JobStatus status;
  SetCondition(&status, kRunning, true, "R", "", kStart + std::chrono::milliseconds{999});
  EXPECT_EQ(status.conditions[0].last_transition, kStart);
  EXPECT_EQ(status.conditions[0].last_update, kStart);
}

TEST(Conditions, WhatARestartOrASuspensionEndsTakesTheirReasonAndMessage) {
  for (const char* type : {kRestarting, kSuspended}) {
    JobStatus status;
    Enter(&status, kRunning, kReasonRunning, "runs", kStart);
    Enter(&status, type, "Why", "because", kStart + seconds{5});
    EXPECT_FALSE(status.Is(kRunning));
    EXPECT_EQ(status.Find(kRunning)->reason, "Why");
    EXPECT_EQ(status.Find(kRunning)->message, "because");
    EXPECT_EQ(status.Find(kRunning)->last_transition, kStart + seconds{5});
  }
}

TEST(Conditions, WhatTheEndOfTheJobEndsKeepsItsOwn) {
  for (const char* type : {kSucceeded, kFailed}) {
    JobStatus status;
    Enter(&status, kRunning, kReasonRunning, "runs", kStart);
    Enter(&status, type, "Why", "because", kStart + seconds{5});
    EXPECT_FALSE(status.Is(kRunning));
    EXPECT_EQ(status.Find(kRunning)->reason, kReasonRunning);
    EXPECT_EQ(status.Find(kRunning)->message, "runs");
    EXPECT_EQ(status.Find(kRunning)->last_transition, kStart + seconds{5});
  }
}

TEST(Conditions, Order) {
  JobStatus status;
  SetCondition(&status, kCreated, true, "", "", kStart);
  EXPECT_EQ(Shown(status), "[Created=T]");
  SetCondition(&status, kReplicaFailure, true, "FailedCreatePod", "quota", kStart);
  EXPECT_EQ(Shown(status), "[Created=T, ReplicaFailure=T]") << "the last one is always true";
  SetCondition(&status, kReplicaFailure, false, "SuccessfulCreatePod", "", kStart);
  EXPECT_EQ(Shown(status), "[ReplicaFailure=F, Created=T]");
  Enter(&status, kRunning, "", "", kStart);
  EXPECT_EQ(Shown(status), "[Created=T, ReplicaFailure=F, Running=T]");
  Enter(&status, kSuspended, "", "", kStart);
  EXPECT_EQ(Shown(status), "[Created=T, ReplicaFailure=F, Running=F, Suspended=T]");
  Leave(&status, kSuspended, "", "", kStart);
  EXPECT_EQ(Shown(status), "[ReplicaFailure=F, Running=F, Suspended=F, Created=T]");
  Enter(&status, kRunning, "", "", kStart);
  EXPECT_EQ(Shown(status), "[Created=T, ReplicaFailure=F, Suspended=F, Running=T]");
  Enter(&status, kRestarting, "", "", kStart);
  Enter(&status, kRunning, "", "", kStart);
  EXPECT_EQ(Shown(status), "[Created=T, ReplicaFailure=F, Suspended=F, Restarting=F, Running=T]");
  Enter(&status, kSucceeded, "", "", kStart);
  EXPECT_EQ(Shown(status),
            "[Created=T, ReplicaFailure=F, Suspended=F, Restarting=F, Running=F, Succeeded=T]");
}

TEST(Conditions, OneOfSomebodyElseIsNeverTheState) {
  JobStatus status;
  SetCondition(&status, kCreated, true, "", "", kStart);
  Enter(&status, kRunning, "", "", kStart);
  SetCondition(&status, "Admitted", true, "", "", kStart);
  EXPECT_EQ(Shown(status), "[Created=T, Admitted=T, Running=T]");
}

TEST(Conditions, LeaveTouchesOnlyWhatIsTrue) {
  JobStatus status;
  Leave(&status, kSuspended, "R", "m", kStart);
  EXPECT_EQ(status.Find(kSuspended), nullptr);
  SetCondition(&status, kSuspended, false, "Old", "m", kStart);
  Leave(&status, kSuspended, "R", "m", kStart);
  EXPECT_EQ(status.Find(kSuspended)->reason, "Old");
}

}  // namespace
}  // namespace core::test
