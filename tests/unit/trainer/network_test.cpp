#include "network.h"

#include <gmock/gmock.h>

namespace ddp {
namespace {

using ::testing::HasSubstr;

std::string NoRoute(const std::string&) { return ""; }

TEST(ChooseAddress, AWorkerOffersItsEndOfTheConnection) {
  EXPECT_EQ(ChooseAddress({"", "10.0.0.2", "10.0.0.3"}, 1, NoRoute), "10.0.0.2");
}

TEST(ChooseAddress, TheMasterTakesTheRouteToAWorker) {
  auto route = [](const std::string& to) { return to == "10.0.0.2" ? "10.0.0.1" : ""; };
  EXPECT_EQ(ChooseAddress({"", "10.0.0.2", "10.0.0.3"}, 0, route), "10.0.0.1");
}

TEST(ChooseAddress, ALoopbackServesOnlyWhereAllShareAHost) {
  EXPECT_EQ(ChooseAddress({"", "127.0.0.1"}, 0, NoRoute), "127.0.0.1");
  EXPECT_EQ(ChooseAddress({"", "127.0.0.1"}, 1, NoRoute), "127.0.0.1");
  EXPECT_EQ(ChooseAddress({"", "::1"}, 0, NoRoute), "::1");
  // Rank 1 shares the master's pod, rank 2 does not: it must be able to reach rank 1.
  auto route = [](const std::string& to) { return to == "10.0.0.3" ? "10.0.0.1" : ""; };
  EXPECT_EQ(ChooseAddress({"", "127.0.0.1", "10.0.0.3"}, 1, route), "10.0.0.1");
  EXPECT_EQ(ChooseAddress({"", "127.0.0.1", "10.0.0.3"}, 0, route), "10.0.0.1");
}

TEST(SourceAddressFor, FollowsTheKernelsRoutes) {
  EXPECT_EQ(SourceAddressFor("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(SourceAddressFor("not an address"), "");
}

TEST(TryConnect, SaysWhyItFailed) {
  auto refused = TryConnect("127.0.0.1", 1, std::chrono::milliseconds(500));
  EXPECT_FALSE(refused.connected);
  EXPECT_EQ(refused.failure, "Connection refused");
  auto unknown = TryConnect("no-such-host.invalid", 1, std::chrono::milliseconds(500));
  EXPECT_FALSE(unknown.connected);
  EXPECT_THAT(unknown.failure, HasSubstr("the name does not resolve"));
}

}  // namespace
}  // namespace ddp
