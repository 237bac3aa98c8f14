#include "runtime/event_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>

#include "runtime/fake_api.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;
using base::ErrorCode;
using testing::SizeIs;

class EventRecorderTest : public testing::Test {
 protected:
  EventRecorderTest() {
    options_.retry_first = 1ms;
    options_.retry_longest = 2ms;
  }

  EventRecorder& Start() {
    return recorder_.emplace(
        api_, [this] { return core::TimePoint(now_.load()); }, [this] { ++dropped_; }, options_);
  }
  void Record(const std::string& reason, const std::string& message = "m") {
    recorder_->Record({"ns", "mnist"}, "uid-1", {true, reason, message});
  }
  void Drain() {
    while (recorder_->pending() > 0) std::this_thread::sleep_for(1ms);
  }

  FakeApi api_;
  EventOptions options_;
  std::atomic<std::chrono::milliseconds> now_{1767225600s};
  std::atomic<int> dropped_{0};
  std::optional<EventRecorder> recorder_;
};

TEST_F(EventRecorderTest, AnEventNamesItsJobAndItsSource) {
  Start();
  Record("PyTorchJobFailed", "it failed");
  Drain();
  ASSERT_THAT(api_.events, SizeIs(1));
  const core::Json& event = api_.events[0];
  EXPECT_EQ(event["involvedObject"]["kind"], "PyTorchJob");
  EXPECT_EQ(event["involvedObject"]["uid"], "uid-1");
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["message"], "it failed");
  EXPECT_EQ(event["source"]["component"], "pytorch-operator");
  EXPECT_EQ(event["reportingComponent"], "pytorch-operator");
  EXPECT_EQ(event["firstTimestamp"], "2026-01-01T00:00:00Z");
}

TEST_F(EventRecorderTest, TheSameEventAgainCountsUp) {
  Start();
  Record("A");
  Record("A");
  Record("A", "another");
  now_ = now_.load() + 60s;
  Record("A");
  Drain();
  ASSERT_THAT(api_.events, SizeIs(2));
  EXPECT_EQ(api_.events[0]["count"], 3);
  EXPECT_EQ(api_.events[0]["lastTimestamp"], "2026-01-01T00:01:00Z");
  EXPECT_EQ(api_.events[1]["count"], 1);
  now_ = now_.load() + 3600s;  // long ago: a new one
  Record("A");
  Drain();
  EXPECT_THAT(api_.events, SizeIs(3));
}

TEST_F(EventRecorderTest, AnExpiredEventIsMadeAnew) {
  Start();
  Record("A");
  Drain();
  api_.events.clear();
  Record("A");
  Drain();
  ASSERT_THAT(api_.events, SizeIs(1));
  EXPECT_EQ(api_.events[0]["count"], 1);
}

TEST_F(EventRecorderTest, ABurstLosesNothingAndKeepsTheOrder) {
  Start();
  for (int i = 0; i < 5000; ++i) Record("A", std::to_string(i));
  Drain();
  ASSERT_THAT(api_.events, SizeIs(5000));
  std::set<std::string> names;
  for (int i = 0; i < 5000; ++i) {
    EXPECT_EQ(api_.events[i]["message"], std::to_string(i));
    names.insert(api_.events[i]["metadata"]["name"]);
  }
  EXPECT_THAT(names, SizeIs(5000));
}

TEST_F(EventRecorderTest, ItIsRetriedUntilItArrivesAndALostReplyMakesNoSecond) {
  std::atomic<int> tries{0};
  api_.fault = [&](const std::string&, bool& applied) -> std::optional<base::Error> {
    if (++tries > 5) return std::nullopt;
    applied = tries == 5;
    return base::Error{ErrorCode::kUnavailable, "away", {}};
  };
  Start();
  Record("A");
  Drain();
  EXPECT_EQ(dropped_, 0);
  // The fifth try took effect, the sixth finds it: the fake makes a second, the name is the same.
  EXPECT_EQ(api_.events.front()["metadata"]["name"], api_.events.back()["metadata"]["name"]);
}

TEST_F(EventRecorderTest, WhatCannotBeDeliveredIsCounted) {
  api_.fault = [](const std::string&, bool&) -> std::optional<base::Error> {
    return base::Error{ErrorCode::kForbidden, "no", {}};
  };
  Start();
  Record("A");
  Drain();
  EXPECT_EQ(dropped_, 1);
  // While the server is away it is kept for ten minutes.
  api_.fault = [this](const std::string&, bool&) -> std::optional<base::Error> {
    now_ = now_.load() + 60s;
    return base::Error{ErrorCode::kUnavailable, "away", {}};
  };
  Record("B");
  Drain();
  EXPECT_EQ(dropped_, 2);
}

TEST_F(EventRecorderTest, AFullQueueDropsTheNewest) {
  options_.queue_limit = 3;
  std::atomic<bool> open{false};
  api_.fault = [&](const std::string&, bool&) -> std::optional<base::Error> {
    if (open) return std::nullopt;
    return base::Error{ErrorCode::kUnavailable, "away", {}};
  };
  Start();
  for (int i = 0; i < 5; ++i) Record("A", std::to_string(i));
  EXPECT_EQ(dropped_, 2);
  open = true;
  Drain();
  ASSERT_THAT(api_.events, SizeIs(3));
  EXPECT_EQ(api_.events[2]["message"], "2");
}

TEST_F(EventRecorderTest, LongMessagesAreCutAtACharacter) {
  Start();
  std::string message = "x";
  while (message.size() < 3000) message += "ä";
  Record("A", message);
  Drain();
  const std::string sent = api_.events.at(0)["message"];
  EXPECT_EQ(sent.size(), 1023u);  // 1 + 2·511
}

}  // namespace
}  // namespace runtime
