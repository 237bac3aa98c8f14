#include "kube/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "kube/recording_transport.h"

namespace kube {
namespace {

using base::ErrorCode;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::Pair;

const Resource kPods{"", "v1", "pods"};

base::Error Unavailable() { return {ErrorCode::kUnavailable, "connection refused", {}}; }

TEST(Client, ReturnsTheBodyOfAnySuccess) {
  RecordingTransport transport;
  Client client(transport, {});
  transport.Answer(200, "got");
  transport.Answer(201, "made");
  EXPECT_EQ(*client.Get(kPods, "ns", "a"), "got");
  EXPECT_EQ(*client.Create(kPods, "ns", "{}"), "made");
  EXPECT_EQ(transport.requests()[0].path, "/api/v1/namespaces/ns/pods/a");
  EXPECT_EQ(transport.requests()[1].body, "{}");
}

TEST(Client, TellsTheServerTheDeadlineOfWritesOnly) {
  RecordingTransport transport;
  Client client(transport, {.write_timeout = milliseconds(2500)});
  for (int i = 0; i < 5; ++i) transport.Answer(200, "{}");
  (void)client.Get(kPods, "ns", "a");
  (void)client.Create(kPods, "ns", "{}");
  (void)client.Update(kPods, "ns", "a", "{}");
  (void)client.MergePatch(kPods, "ns", "a", "status", "{}");
  (void)client.Delete(kPods, "ns", "a", {});
  const auto requests = transport.requests();
  ASSERT_EQ(requests.size(), 5u);
  EXPECT_EQ(requests[0].path.find("timeout"), std::string::npos);
  for (size_t i = 1; i < 5; ++i) {
    EXPECT_NE(requests[i].path.find("?timeout=2500ms"), std::string::npos) << requests[i].path;
    EXPECT_LE(requests[i].timeout, milliseconds(2500));
  }
}

TEST(Client, ReadsAreRetriedWhenTheServerIsAway) {
  RecordingTransport transport;
  Client client(transport, {.retries = 2});
  transport.Answer(Unavailable());
  transport.Answer(503, "starting");
  transport.Answer(200, "ok");
  EXPECT_TRUE(client.Get(kPods, "ns", "a").ok());
  EXPECT_EQ(transport.requests().size(), 3u);
}

TEST(Client, RetriesEnd) {
  RecordingTransport transport;
  Client client(transport, {.retries = 1});
  const auto reply = client.List(kPods, "", {});
  EXPECT_EQ(reply.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(transport.requests().size(), 2u);
}

TEST(Client, WritesAreNotRetriedSinceTheyMayHaveBeenApplied) {
  RecordingTransport transport;
  Client client(transport, {});
  transport.Answer(Unavailable());
  EXPECT_EQ(client.Create(kPods, "ns", "{}").error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(transport.requests().size(), 1u);
}

TEST(Client, AnyVerbIsRetriedAfterRetryAfter) {
  RecordingTransport transport;
  Client client(transport, {.write_timeout = seconds(20)});
  transport.Answer(429, "", {{"retry-after", "1"}});
  transport.Answer(201, "made");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(client.Create(kPods, "ns", "{}").ok());
  EXPECT_GE(std::chrono::steady_clock::now() - start, seconds(1)) << "the server asked to wait";
}

TEST(Client, A429WithoutRetryAfterOrWithOneBehindTheDeadlineIsReturned) {
  RecordingTransport transport;
  Client client(transport, {});
  transport.Answer(429, "");
  EXPECT_EQ(client.Create(kPods, "ns", "{}").error().code, ErrorCode::kTooManyRequests);
  transport.Answer(429, "", {{"retry-after", "60"}});
  const auto late = client.Create(kPods, "ns", "{}");
  EXPECT_EQ(late.error().retry_after, seconds(60));
  EXPECT_EQ(transport.requests().size(), 2u);
}

TEST(Client, EveryAttemptIsReported) {
  RecordingTransport transport;
  std::vector<std::pair<std::string, int>> seen;
  Client client(transport, {}, [&seen](std::string_view method, int status, double elapsed) {
    seen.emplace_back(method, status);
    EXPECT_GE(elapsed, 0);
  });
  transport.Answer(Unavailable());
  transport.Answer(404, "");
  (void)client.Get(kPods, "ns", "a");
  transport.Answer(200, "");
  (void)client.Delete(kPods, "ns", "a", {});
  EXPECT_THAT(seen, ElementsAre(Pair("GET", 0), Pair("GET", 404), Pair("DELETE", 200)));
}

TEST(Client, CancelEndsWaitsAndLaterRequests) {
  RecordingTransport transport;
  Client client(transport, {.timeout = seconds(600)});
  transport.Answer(429, "", {{"retry-after", "500"}});
  std::jthread other([&client, &transport] {
    while (transport.requests().empty()) std::this_thread::yield();
    client.Cancel();
  });
  EXPECT_FALSE(client.Get(kPods, "ns", "a").ok());
  EXPECT_EQ(client.Get(kPods, "ns", "a").error().code, ErrorCode::kCancelled);
}

TEST(Client, AListEndsWithItsCallersToken) {
  RecordingTransport transport;
  Client client(transport, {});
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(client.List(kPods, "", {}, stop.get_token()).error().code, ErrorCode::kCancelled);
  transport.Answer(200, "{}");
  EXPECT_TRUE(client.List(kPods, "", {}).ok()) << "others go on";
}

TEST(Client, WatchHandsBlocksOnAndMapsItsStatus) {
  RecordingTransport transport;
  Client client(transport, {});
  transport.AnswerWatch({.blocks = {"ab", "c"}});
  std::vector<std::string> blocks;
  const auto keep = [&blocks](std::string_view block) {
    blocks.emplace_back(block);
    return true;
  };
  EXPECT_TRUE(client.Watch(kPods, "", {}, keep, {}).ok());
  EXPECT_THAT(blocks, ElementsAre("", "ab", "c"));
  transport.AnswerWatch({.result = HttpResponse{410, {}, R"({"kind":"Status","message":"old"})"}});
  const auto gone = client.Watch(kPods, "", {}, keep, {});
  EXPECT_EQ(gone.error().code, ErrorCode::kGone);
  EXPECT_EQ(gone.error().message, "old");
}

}  // namespace
}  // namespace kube
