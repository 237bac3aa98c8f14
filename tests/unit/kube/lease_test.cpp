#include "kube/lease.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>

namespace kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using In = LeaseInput::Kind;
using Act = LeaseAction::Kind;

const LeaseTime kStart{seconds(1000)};

LeaseOptions Options(const std::string& identity = "me") { return {"ns", "lock", identity}; }

LeaseRecord Held(const std::string& holder, const std::string& version = "1") {
  return {holder, 15, "t0", "t" + version, 3, version};
}

LeaseStep Read(LeaseState state, std::optional<LeaseRecord> record, LeaseTime now) {
  return Step(std::move(state), {In::kRead, std::move(record), now}, Options(), now, "now");
}
LeaseStep Tick(LeaseState state, LeaseTime now) {
  return Step(std::move(state), {}, Options(), now, "now");
}
LeaseStep Written(LeaseState state, const LeaseRecord& record, LeaseTime sent, LeaseTime now) {
  return Step(std::move(state), {In::kWritten, record, sent}, Options(), now, "now");
}
LeaseStep Failed(LeaseState state, LeaseTime now) {
  return Step(std::move(state), {In::kFailed, {}, now}, Options(), now, "now");
}
LeaseState Leading(LeaseTime renewed) { return Written({}, Held("me"), renewed, renewed).next; }

TEST(Lease, LooksFirst) { EXPECT_EQ(Tick({}, kStart).action.kind, Act::kRead); }

TEST(Lease, IsCreatedWhereThereIsNone) {
  const auto step = Read({}, std::nullopt, kStart);
  EXPECT_EQ(step.action.kind, Act::kCreate);
  EXPECT_EQ(step.action.record.holder, "me");
  EXPECT_EQ(step.action.record.duration_seconds, 15);
  EXPECT_EQ(step.action.record.transitions, 0);
  EXPECT_FALSE(step.next.leading) << "not before the server has said so";
}

TEST(Lease, OfAnotherIsRespectedUntilItHasNotChangedForItsDuration) {
  auto step = Read({}, Held("other", "1"), kStart);
  EXPECT_EQ(step.action.kind, Act::kWait);
  EXPECT_EQ(step.action.until, kStart + seconds(1));
  step = Read(step.next, Held("other", "2"), kStart + seconds(10));
  step = Read(step.next, Held("other", "2"), kStart + seconds(24));
  EXPECT_EQ(step.action.kind, Act::kWait) << "renewed at 10 s";
  step = Read(step.next, Held("other", "2"), kStart + seconds(25));
  ASSERT_EQ(step.action.kind, Act::kUpdate);
  EXPECT_EQ(step.action.record.holder, "me");
  EXPECT_EQ(step.action.record.resource_version, "2") << "fails if it was renewed meanwhile";
  EXPECT_EQ(step.action.record.transitions, 4);
}

TEST(Lease, IsNotSleptOver) {
  auto step = Read({}, Held("other"), kStart);
  step = Read(step.next, Held("other"), kStart + milliseconds(14900));
  EXPECT_EQ(step.action.until, kStart + seconds(15));
}

TEST(Lease, RecordSaysHowLongItIsValid) {
  LeaseRecord longer = Held("other");
  longer.duration_seconds = 60;
  auto step = Read({}, longer, kStart);
  EXPECT_EQ(Read(step.next, longer, kStart + seconds(59)).action.kind, Act::kWait);
  EXPECT_EQ(Read(step.next, longer, kStart + seconds(60)).action.kind, Act::kUpdate);
}

TEST(Lease, AChangedLabelIsNoSignOfLife) {
  auto step = Read({}, Held("other", "1"), kStart);
  LeaseRecord labelled = Held("other", "1");
  labelled.resource_version = "5";
  step = Read(step.next, labelled, kStart + seconds(15));
  ASSERT_EQ(step.action.kind, Act::kUpdate);
  EXPECT_EQ(step.action.record.resource_version, "5");
}

TEST(Lease, ReleasedIsTakenAtOnce) {
  EXPECT_EQ(Read({}, Held(""), kStart).action.kind, Act::kUpdate);
}

TEST(Lease, ALeaderRenewsEachPeriodFromWhenItSent) {
  auto step = Written({}, Held("me"), kStart, kStart + milliseconds(700));
  EXPECT_TRUE(step.next.leading);
  EXPECT_EQ(step.action.kind, Act::kWait);
  EXPECT_EQ(step.action.until, kStart + seconds(2));
  step = Tick(step.next, kStart + seconds(2));
  EXPECT_EQ(step.action.kind, Act::kUpdate);
  EXPECT_EQ(step.action.record.acquire_time, "t0") << "kept";
  EXPECT_EQ(step.action.record.renew_time, "now");
  EXPECT_EQ(step.action.record.transitions, 3) << "kept";
}

TEST(Lease, MayWriteUntilTheRenewDeadlineAfterSending) {
  const auto state = Written({}, Held("me"), kStart, kStart + seconds(3)).next;
  EXPECT_TRUE(MayWrite(state, Options(), kStart + milliseconds(9999)));
  EXPECT_FALSE(MayWrite(state, Options(), kStart + seconds(10)));
  EXPECT_FALSE(MayWrite({}, Options(), kStart));
}

TEST(Lease, AReplyBehindTheDeadlineMakesNoLeader) {
  const auto step = Written({}, Held("me"), kStart, kStart + seconds(11));
  EXPECT_FALSE(step.next.leading);
}

TEST(Lease, AfterAFailureItReadsBeforeItWrites) {
  auto step = Failed(Leading(kStart), kStart + seconds(2));
  EXPECT_TRUE(step.next.leading) << "there is time left";
  EXPECT_EQ(step.action.kind, Act::kWait) << "no tight loop";
  step = Tick(step.next, step.action.until);
  EXPECT_EQ(step.action.kind, Act::kRead);
  step = Read(step.next, Held("me", "9"), kStart + seconds(3));
  EXPECT_EQ(step.action.kind, Act::kUpdate);
  EXPECT_EQ(step.action.record.resource_version, "9");
}

TEST(Lease, FailuresUntilTheDeadlineEndLeadership) {
  auto step = Failed(Leading(kStart), kStart + seconds(9));
  EXPECT_TRUE(step.next.leading);
  step = Failed(step.next, kStart + seconds(10));
  EXPECT_FALSE(step.next.leading);
  EXPECT_FALSE(Tick(Leading(kStart), kStart + seconds(10)).next.leading) << "stopped and continued";
}

TEST(Lease, TakenByAnotherEndsLeadership) {
  const auto step = Read(Leading(kStart), Held("other", "5"), kStart + seconds(3));
  EXPECT_FALSE(step.next.leading);
  EXPECT_EQ(step.action.kind, Act::kWait);
}

TEST(Lease, DeletedEndsLeadershipAndIsMadeAnew) {
  const auto step = Read(Leading(kStart), std::nullopt, kStart + seconds(3));
  EXPECT_FALSE(step.next.leading);
  EXPECT_EQ(step.action.kind, Act::kCreate);
}

TEST(Lease, BodyAndParserAgree) {
  const LeaseRecord record{"me", 15,  "2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:02.000000Z",
                           4,    "77"};
  const auto body = LeaseBody(Options(), record);
  const auto parsed = ParseLease(body);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(*parsed, record);
  const auto json = nlohmann::json::parse(body);
  EXPECT_EQ(json["metadata"]["name"], "lock");
  EXPECT_EQ(json["spec"]["holderIdentity"], "me");
}

TEST(Lease, ParserSurvivesWhatOthersWrite) {
  for (const char* text : {"", "[]", "{}", R"({"metadata":1})", R"({"metadata":{},"spec":[]})"}) {
    EXPECT_FALSE(ParseLease(text).ok()) << text;
  }
  const auto odd = ParseLease(
      R"({"metadata":{},"spec":{"holderIdentity":7,"leaseDurationSeconds":"x","renewTime":null}})");
  ASSERT_TRUE(odd.ok());
  EXPECT_EQ(odd->holder, "");
  EXPECT_EQ(odd->duration_seconds, 0);
  EXPECT_TRUE(ParseLease(R"({"metadata":{"resourceVersion":"1"}})").ok());
}

// Contenders with clocks that differ, over a store with optimistic locking that loses replies,
// fails and is slow; contenders are stopped and continued. No two may ever write at once.
class Model {
 public:
  explicit Model(unsigned seed) : random_(seed) {
    for (int i = 0; i < 3; ++i) {
      contenders_.push_back(
          {Options("c" + std::to_string(i)), {}, {}, {}, seconds(Random(100000))});
    }
  }

  void Run(milliseconds length) {
    for (; now_ < length; now_ += milliseconds(50)) {
      for (auto& contender : contenders_) Advance(contender);
      int writers = 0;
      for (const auto& contender : contenders_) {
        // A process that is stopped can't write; but one that only comes back asks its own clock.
        if (MayWrite(contender.state, contender.options, Clock(contender))) ++writers;
      }
      ASSERT_LE(writers, 1) << "at " << now_.count() << " ms";
      led_ += writers;
    }
  }
  int led() const { return led_; }

 private:
  struct Contender {
    LeaseOptions options;
    LeaseState state;
    LeaseInput input;       // that waits to be taken
    milliseconds until{0};  // busy, waiting or stopped
    milliseconds skew{0};
  };

  int Random(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random_); }
  LeaseTime Clock(const Contender& contender) const { return LeaseTime(now_ + contender.skew); }

  void Advance(Contender& contender) {
    if (now_ < contender.until) return;
    if (Random(400) == 0) {
      contender.until = now_ + milliseconds(Random(40000));  // SIGSTOP
      return;
    }
    const LeaseTime clock = Clock(contender);
    auto [next, action] = Step(contender.state, contender.input, contender.options, clock,
                               std::to_string(now_.count()));
    contender.state = next;
    contender.input = {};
    if (action.kind == Act::kWait) {
      contender.until = now_ + std::chrono::duration_cast<milliseconds>(action.until - clock);
      return;
    }
    // The request is carried out now, its answer is seen later.
    contender.input = Serve(action);
    contender.input.sent = clock;
    contender.until = now_ + milliseconds(Random(20) == 0 ? Random(12000) : Random(300));
  }

  LeaseInput Serve(const LeaseAction& action) {
    const bool fail = Random(6) == 0;
    const bool lose = Random(6) == 0;
    if (fail) return {In::kFailed, {}, {}};
    if (action.kind == Act::kRead)
      return lose ? LeaseInput{In::kFailed, {}, {}} : LeaseInput{In::kRead, stored_, {}};
    const bool fits = action.kind == Act::kCreate
                          ? !stored_
                          : stored_ && stored_->resource_version == action.record.resource_version;
    if (!fits) return {In::kFailed, {}, {}};
    stored_ = action.record;
    stored_->resource_version = std::to_string(++version_);
    return lose ? LeaseInput{In::kFailed, {}, {}} : LeaseInput{In::kWritten, stored_, {}};
  }

  std::minstd_rand random_;
  milliseconds now_{0};
  std::optional<LeaseRecord> stored_;
  int version_ = 0;
  int led_ = 0;
  std::vector<Contender> contenders_;
};

TEST(Lease, NeverHasTwoWriters) {
  int led = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Model model(seed);
    model.Run(std::chrono::minutes(10));
    if (HasFatalFailure()) return;
    led += model.led();
  }
  EXPECT_GT(led, 200 * 12000 / 3) << "somebody leads most of the time";
}

}  // namespace
}  // namespace kube
