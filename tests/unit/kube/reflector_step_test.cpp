#include "kube/reflector_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kube {
namespace {

using base::ErrorCode;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using Phase = ReflectorState::Phase;

const Resource kJobs{"kubeflow.org", "v1", "pytorchjobs"};

std::string Show(const ReflectorEffect& effect) {
  struct Printer {
    std::string operator()(const effect::DropPages&) { return "drop"; }
    std::string operator()(const effect::Replace& e) { return "replace@" + e.resource_version; }
    std::string operator()(const effect::Apply& e) {
      return "apply" + std::to_string(static_cast<int>(e.type)) + " " + std::string(e.object);
    }
    std::string operator()(const effect::Progress& e) { return "progress@" + e.resource_version; }
    std::string operator()(const effect::Trouble& e) { return e.why.empty() ? "back" : "lost"; }
    std::string operator()(const effect::EndWatch&) { return "leave"; }
  };
  return std::visit(Printer{}, effect);
}

std::vector<std::string> Show(const ReflectorStep& step) {
  std::vector<std::string> shown;
  for (const auto& effect : step.effects) shown.push_back(Show(effect));
  return shown;
}

ReflectorStep Do(ReflectorState state, const ReflectorInput& input) {
  return Step(std::move(state), input, kJobs, 0);
}

ReflectorState Watching(const std::string& version) {
  ReflectorState state;
  state.phase = Phase::kWatching;
  state.resource_version = version;
  return state;
}

input::Event Frame(std::string_view type, const std::string& version) {
  return {type, "{}", version, 0, ""};
}
input::Event ErrorFrame(int code) { return {"ERROR", "{}", "", code, "why"}; }
base::Error Error(ErrorCode code, milliseconds retry_after = {}) {
  return {code, "why", retry_after};
}

TEST(ReflectorStep, ListsPageByPageThenWatches) {
  auto step = Do({}, input::Page{"7", "token"});
  EXPECT_THAT(Show(step), ElementsAre());
  EXPECT_EQ(step.next.phase, Phase::kListing);
  EXPECT_EQ(step.next.continue_token, "token");
  step = Do(step.next, input::Page{"7", ""});
  EXPECT_THAT(Show(step), ElementsAre("replace@7"));
  EXPECT_EQ(step.next.phase, Phase::kWatching);
  EXPECT_EQ(step.next.resource_version, "7");
  EXPECT_EQ(step.next.continue_token, "");
  EXPECT_EQ(step.wait.count(), 0);
}

TEST(ReflectorStep, AppliesEventsAndMovesOn) {
  struct Row {
    const char* type;
    std::vector<std::string> effects;
    const char* version;
  };
  for (const auto& row : {
           Row{"ADDED", {"apply0 {}", "progress@8"}, "8"},
           Row{"MODIFIED", {"apply1 {}", "progress@8"}, "8"},
           Row{"DELETED", {"apply2 {}", "progress@8"}, "8"},
           Row{"BOOKMARK", {"progress@8"}, "8"},
           Row{"FUTURE", {}, "7"},
       }) {
    const auto step = Do(Watching("7"), Frame(row.type, "8"));
    EXPECT_EQ(Show(step), row.effects) << row.type;
    EXPECT_EQ(step.next.resource_version, row.version) << row.type;
    EXPECT_EQ(step.next.phase, Phase::kWatching);
  }
}

TEST(ReflectorStep, AnObjectWithoutAVersionIsAppliedButNoProgress) {
  const auto step = Do(Watching("7"), Frame("ADDED", ""));
  EXPECT_THAT(Show(step), ElementsAre("apply0 {}"));
  EXPECT_EQ(step.next.resource_version, "7");
}

TEST(ReflectorStep, ResumesWhereItWas) {
  for (const auto code :
       {ErrorCode::kUnavailable, ErrorCode::kTimeout, ErrorCode::kUnauthorized,
        ErrorCode::kForbidden, ErrorCode::kTooManyRequests, ErrorCode::kInternal}) {
    const auto step = Do(Watching("7"), input::WatchFailed{Error(code)});
    EXPECT_EQ(step.next.phase, Phase::kWatching) << static_cast<int>(code);
    EXPECT_EQ(step.next.resource_version, "7");
    EXPECT_THAT(Show(step), ElementsAre("lost"));
    EXPECT_EQ(step.wait, milliseconds(100));
  }
  const auto ended = Do(Watching("7"), input::WatchEnded{});
  EXPECT_EQ(ended.next.phase, Phase::kWatching);
  EXPECT_EQ(ended.next.resource_version, "7");
  EXPECT_EQ(ended.wait.count(), 0);
  EXPECT_THAT(Show(ended), ElementsAre());
}

TEST(ReflectorStep, ListsAgainWhenItsVersionIsGone) {
  auto by_status = Do(Watching("7"), input::WatchFailed{Error(ErrorCode::kGone)});
  EXPECT_THAT(Show(by_status), ElementsAre()) << "no trouble for humans";
  EXPECT_EQ(by_status.next.phase, Phase::kListing);
  EXPECT_EQ(by_status.wait.count(), 0) << "at once";
  const auto by_event = Do(Watching("7"), ErrorFrame(410));
  EXPECT_THAT(Show(by_event), ElementsAre("leave"));
  EXPECT_EQ(by_event.next.phase, Phase::kListing);
  EXPECT_EQ(by_event.wait.count(), 0);
}

TEST(ReflectorStep, AnEndlessRoundOf410AndListIsSlowedDown) {
  ReflectorState state = Watching("7");
  milliseconds last{0};
  for (int i = 0; i < 5; ++i) {
    auto expired = Do(state, ErrorFrame(410));
    if (i > 0) {
      EXPECT_GT(expired.wait, last) << i;
    }
    last = expired.wait;
    state = Do(expired.next, input::Page{"7", ""}).next;
    state = Do(state, input::Opened{}).next;
  }
  // A watch that brings something ends the series.
  state = Do(state, Frame("BOOKMARK", "8")).next;
  EXPECT_EQ(Do(state, ErrorFrame(410)).wait.count(), 0);
}

TEST(ReflectorStep, ListsAgainWhenTheStreamCannotBeTrusted) {
  for (const ReflectorInput& input :
       {ReflectorInput(ErrorFrame(500)), ReflectorInput(ErrorFrame(0)),
        ReflectorInput(input::Garbage{"x"})}) {
    const auto step = Do(Watching("7"), input);
    EXPECT_THAT(Show(step), ElementsAre("leave", "lost"));
    EXPECT_EQ(step.next.phase, Phase::kListing);
    EXPECT_EQ(step.wait, milliseconds(100));
  }
  for (const auto code : {ErrorCode::kNotFound, ErrorCode::kInvalidArgument, ErrorCode::kInvalid}) {
    EXPECT_EQ(Do(Watching("7"), input::WatchFailed{Error(code)}).next.phase, Phase::kListing);
  }
}

TEST(ReflectorStep, TroubleIsToldOnceAndItsEndOnce) {
  auto step = Do({}, input::ListFailed{Error(ErrorCode::kUnavailable)});
  EXPECT_THAT(Show(step), ElementsAre("drop", "lost"));
  step = Do(step.next, input::ListFailed{Error(ErrorCode::kUnavailable)});
  EXPECT_THAT(Show(step), ElementsAre("drop"));
  step = Do(step.next, input::Page{"7", ""});
  EXPECT_THAT(Show(step), ElementsAre("replace@7", "back"));
  step = Do(step.next, input::Opened{});
  EXPECT_THAT(Show(step), ElementsAre());
  step = Do(step.next, input::WatchFailed{Error(ErrorCode::kTimeout)});
  EXPECT_THAT(Show(step), ElementsAre("lost"));
  step = Do(step.next, input::Opened{});
  EXPECT_THAT(Show(step), ElementsAre("back")) << "without waiting for an event";
}

TEST(ReflectorStep, WaitsForAResourceThatDoesNotExistYet) {
  ReflectorState state;
  for (int i = 0; i < 20; ++i) {
    const auto step = Do(state, input::ListFailed{Error(ErrorCode::kNotFound)});
    EXPECT_EQ(step.next.phase, Phase::kListing);
    EXPECT_GT(step.wait.count(), 0);
    if (i == 0) {
      const auto& why = std::get<effect::Trouble>(step.effects.back()).why;
      EXPECT_NE(why.find("pytorchjobs.kubeflow.org"), std::string::npos) << why;
      EXPECT_NE(why.find("CustomResourceDefinition"), std::string::npos) << why;
    }
    state = step.next;
  }
  EXPECT_EQ(Do(state, input::Page{"7", ""}).next.phase, Phase::kWatching);
}

TEST(ReflectorStep, AListWhosePagesExpireStartsAgain) {
  ReflectorState state;
  state = Do(state, input::Page{"7", "token"}).next;
  auto step = Do(state, input::ListFailed{Error(ErrorCode::kGone)});
  EXPECT_THAT(Show(step), ElementsAre("drop"));
  EXPECT_EQ(step.next.continue_token, "");
  EXPECT_EQ(step.next.expired_pages, 1);
  step =
      Do(Do(step.next, input::Page{"8", "token"}).next, input::ListFailed{Error(ErrorCode::kGone)});
  EXPECT_EQ(step.next.expired_pages, 2);
  EXPECT_EQ(Do(step.next, input::Page{"9", ""}).next.expired_pages, 0);
}

TEST(ReflectorStep, AnOlderListIsRefusedUntilItKeepsComing) {
  ReflectorState state = Watching("100");
  state.phase = Phase::kListing;
  int refused = 0;
  while (state.phase == Phase::kListing) {
    ASSERT_LT(refused, 20);
    const auto step = Do(state, input::Page{"99", ""});
    state = step.next;
    if (state.phase == Phase::kListing) {
      ++refused;
      EXPECT_EQ(Show(step).front(), "drop");
      EXPECT_GT(step.wait.count(), 0);
    } else {
      EXPECT_EQ(Show(step).front(), "replace@99");
    }
  }
  EXPECT_EQ(refused, 5);
}

TEST(ReflectorStep, EqualNewerAndUnorderedVersionsAreTaken) {
  for (const char* version : {"100", "101", "1000", "x99"}) {
    ReflectorState state = Watching("100");
    state.phase = Phase::kListing;
    EXPECT_EQ(Do(state, input::Page{version, ""}).next.phase, Phase::kWatching) << version;
  }
}

TEST(ReflectorStep, AServerThatEndsEveryWatchAtOnceIsAskedMoreAndMoreSlowly) {
  ReflectorState state = Watching("7");
  auto step = Do(state, input::WatchEnded{true});
  EXPECT_EQ(step.wait, milliseconds(100));
  step = Do(step.next, input::WatchEnded{true});
  EXPECT_EQ(step.wait, milliseconds(200));
  step = Do(step.next, input::WatchEnded{false});
  EXPECT_EQ(step.next.failures, 0);
}

TEST(ReflectorStep, WaitsAtLeastAsLongAsTheServerAsks) {
  const auto step =
      Do(Watching("7"), input::WatchFailed{Error(ErrorCode::kTooManyRequests, seconds(5))});
  EXPECT_EQ(step.wait, seconds(5));
}

TEST(Backoff, DoublesToALimitAndJitterTakesUpToHalf) {
  EXPECT_EQ(Backoff(1, 0), milliseconds(100));
  EXPECT_EQ(Backoff(2, 0), milliseconds(200));
  EXPECT_EQ(Backoff(9, 0), milliseconds(25600));
  EXPECT_EQ(Backoff(10, 0), seconds(30));
  EXPECT_EQ(Backoff(1000000, 0), seconds(30));
  EXPECT_EQ(Backoff(1, 0.5), milliseconds(75));
  EXPECT_GE(Backoff(1, 0.999), milliseconds(50));
}

}  // namespace
}  // namespace kube
