#include "kube/request_limits.h"

#include <gtest/gtest.h>

#include <thread>

namespace kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

const steady_clock::time_point kStart{seconds(1000)};

TEST(TokenBucket, WithoutALimitNobodyWaits) {
  TokenBucket bucket(0, 1);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(bucket.Take(kStart).count(), 0);
}

TEST(TokenBucket, LetsABurstGoAndThenOneByOne) {
  TokenBucket bucket(10, 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bucket.Take(kStart).count(), 0) << i;
  EXPECT_EQ(bucket.Take(kStart), milliseconds(100));
  EXPECT_EQ(bucket.Take(kStart), milliseconds(200));
  // 300 ms later three have been filled in, two of which are promised.
  EXPECT_EQ(bucket.Take(kStart + milliseconds(300)).count(), 0);
  EXPECT_EQ(bucket.Take(kStart + milliseconds(300)), milliseconds(100));
}

TEST(TokenBucket, NeverHoldsMoreThanABurst) {
  TokenBucket bucket(10, 2);
  bucket.Take(kStart);
  const auto later = kStart + seconds(3600);
  EXPECT_EQ(bucket.Take(later).count(), 0);
  EXPECT_EQ(bucket.Take(later).count(), 0);
  EXPECT_GT(bucket.Take(later).count(), 0);
}

TEST(RequestLimits, MoreThanAllowedWaitTheirTurn) {
  RequestLimits limits(0, 1);
  const auto soon = [] { return steady_clock::now() + milliseconds(20); };
  ASSERT_EQ(limits.Enter(soon(), {}), RequestLimits::Outcome::kEntered);
  EXPECT_EQ(limits.Enter(soon(), {}), RequestLimits::Outcome::kLate);
  std::jthread other([&limits] { limits.Leave(); });
  EXPECT_EQ(limits.Enter(steady_clock::now() + seconds(60), {}), RequestLimits::Outcome::kEntered);
}

TEST(RequestLimits, StopEndsTheWait) {
  RequestLimits limits(0, 1);
  const auto later = steady_clock::now() + seconds(600);
  ASSERT_EQ(limits.Enter(later, {}), RequestLimits::Outcome::kEntered);
  std::stop_source stop;
  std::jthread other([&stop] { stop.request_stop(); });
  EXPECT_EQ(limits.Enter(later, stop.get_token()), RequestLimits::Outcome::kStopped);
}

TEST(RequestLimits, ARateThatAllowsNoTurnBeforeTheDeadlineIsLate) {
  RequestLimits limits(0.001, 10);
  EXPECT_EQ(limits.Enter(steady_clock::now() + milliseconds(20), {}),
            RequestLimits::Outcome::kEntered);
  EXPECT_EQ(limits.Enter(steady_clock::now() + milliseconds(20), {}),
            RequestLimits::Outcome::kLate);
}

}  // namespace
}  // namespace kube
