#include "runtime/work_queue.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace runtime {
namespace {

using core::JobKey;
using core::TimePoint;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

class WorkQueueTest : public testing::Test {
 protected:
  // Takes and gives back all that waits, in order.
  std::vector<std::string> Drain() {
    std::vector<std::string> names;
    while (auto key = queue_.TryTake()) {
      names.push_back(key->name);
      queue_.Done(*key);
    }
    return names;
  }
  static JobKey Key(const std::string& name) { return {"ns", name}; }

  TimePoint now_{1000s};
  WorkQueue queue_{[this] { return now_; }};
};

using Names = std::vector<std::string>;

TEST_F(WorkQueueTest, AKeyWaitsOnceHoweverOftenItIsAdded) {
  queue_.Add(Key("a"), Priority::kNormal);
  queue_.Add(Key("b"), Priority::kNormal);
  queue_.Add(Key("a"), Priority::kNormal);
  EXPECT_EQ(queue_.depth(), 2u);
  EXPECT_EQ(Drain(), (Names{"a", "b"}));
}

TEST_F(WorkQueueTest, AUsersChangeGoesBeforeTheBacklog) {
  for (const char* name : {"old1", "old2", "old3"}) queue_.Add(Key(name), Priority::kBacklog);
  queue_.Add(Key("child"), Priority::kNormal);
  queue_.Add(Key("new"), Priority::kUrgent);
  queue_.Add(Key("old3"), Priority::kUrgent);  // moves up
  queue_.Add(Key("new"), Priority::kBacklog);  // never down
  EXPECT_EQ(Drain(), (Names{"old3", "new", "child", "old1", "old2"}));
}

TEST_F(WorkQueueTest, AStreamOfUrgentKeysDoesNotStarveTheBacklog) {
  queue_.Add(Key("old"), Priority::kBacklog);
  for (int i = 0; i < 20; ++i) queue_.Add(Key("new" + std::to_string(i)), Priority::kUrgent);
  const Names order = Drain();
  const auto place = std::find(order.begin(), order.end(), "old") - order.begin();
  EXPECT_EQ(place, 7);
}

TEST_F(WorkQueueTest, AKeyAddedWhileItIsWorkedOnComesAgainAfterDone) {
  queue_.Add(Key("a"), Priority::kNormal);
  auto key = queue_.TryTake();
  ASSERT_TRUE(key);
  queue_.Add(Key("a"), Priority::kNormal);
  EXPECT_FALSE(queue_.TryTake()) << "two workers would hold one key";
  queue_.Done(*key);
  EXPECT_EQ(Drain(), Names{"a"});
  EXPECT_EQ(Drain(), Names{});
}

TEST_F(WorkQueueTest, LookAgainComesAtItsTimeAndTheNewestOneCounts) {
  queue_.LookAgainAt(Key("a"), now_ + 10s);
  queue_.LookAgainAt(Key("b"), now_ + 5s);
  queue_.LookAgainAt(Key("a"), now_ + 3s);
  queue_.LookAgainAt(Key("c"), now_ + 1s);
  queue_.LookAgainAt(Key("c"), std::nullopt);
  EXPECT_EQ(Drain(), Names{});
  now_ += 3s;
  EXPECT_EQ(Drain(), Names{"a"});
  now_ += 20s;
  EXPECT_EQ(Drain(), Names{"b"});
}

TEST_F(WorkQueueTest, ATimeThatComesWhileItIsWorkedOnIsNotLost) {
  queue_.Add(Key("a"), Priority::kNormal);
  auto key = queue_.TryTake();
  queue_.LookAgainAt(Key("a"), now_ + 1s);
  now_ += 2s;
  EXPECT_FALSE(queue_.TryTake());
  queue_.Done(*key);
  EXPECT_EQ(Drain(), Names{"a"});
}

TEST_F(WorkQueueTest, ErrorsAreRetriedEverMoreRarely) {
  std::vector<milliseconds> delays;
  for (int i = 0; i < 20; ++i) delays.push_back(queue_.Retry(Key("a")));
  EXPECT_EQ(delays[0], 5ms);
  EXPECT_EQ(delays[1], 10ms);
  EXPECT_EQ(delays[10], 5120ms);
  EXPECT_EQ(delays[19], 5min);
  EXPECT_EQ(queue_.Retry(Key("b")), 5ms) << "each key has its own";
  queue_.Forget(Key("a"));
  EXPECT_EQ(queue_.Retry(Key("a")), 5ms);
  EXPECT_EQ(Drain(), Names{});
  now_ += 5ms;
  EXPECT_EQ(Drain(), (Names{"a", "b"}));
}

TEST_F(WorkQueueTest, StopEndsAWaitingTake) {
  std::jthread worker([this](std::stop_token stop) { EXPECT_FALSE(queue_.Take(stop)); });
  worker.request_stop();
  worker.join();
}

// A shorter time set while a worker already sleeps for a longer one must wake it.
TEST(WorkQueueThreadsTest, ASleepingWorkerSeesAnEarlierTime) {
  auto clock = [] {
    return std::chrono::time_point_cast<milliseconds>(std::chrono::system_clock::now());
  };
  WorkQueue queue(clock);
  queue.LookAgainAt({"ns", "late"}, clock() + 1h);
  std::optional<JobKey> taken;
  std::jthread worker([&](std::stop_token stop) { taken = queue.Take(stop); });
  std::this_thread::sleep_for(20ms);
  queue.LookAgainAt({"ns", "soon"}, clock() + 1ms);
  worker.join();
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->name, "soon");
}

TEST(WorkQueueThreadsTest, NoKeyIsLostOrDoubledBetweenWorkers) {
  WorkQueue queue(
      [] { return std::chrono::time_point_cast<milliseconds>(std::chrono::system_clock::now()); });
  constexpr int kKeys = 50, kRounds = 40;
  std::array<std::atomic<int>, kKeys> inside{}, added{}, seen{};
  std::atomic<bool> doubled{false};
  {
    std::vector<std::jthread> workers;
    for (int w = 0; w < 4; ++w) {
      workers.emplace_back([&](std::stop_token stop) {
        while (auto key = queue.Take(stop)) {
          const int i = std::stoi(key->name);
          if (inside[i].fetch_add(1) != 0) doubled = true;
          seen[i] = added[i].load();
          inside[i].fetch_sub(1);
          queue.Done(*key);
        }
      });
    }
    for (int round = 1; round <= kRounds; ++round) {
      for (int i = 0; i < kKeys; ++i) {
        added[i] = round;
        queue.Add({"ns", std::to_string(i)}, static_cast<Priority>(i % 3));
      }
    }
    // Level-triggered: after the last Add every key is looked at once more.
    auto all_seen = [&] {
      for (auto& s : seen) {
        if (s != kRounds) return false;
      }
      return true;
    };
    while (!all_seen()) std::this_thread::yield();
  }
  EXPECT_FALSE(doubled);
}

}  // namespace
}  // namespace runtime
