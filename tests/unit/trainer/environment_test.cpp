#include "ddp/environment.h"

#include <gmock/gmock.h>

#include <map>

namespace ddp {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Result<Environment> Read(const std::map<std::string, std::string>& variables) {
  return ReadEnvironment([&](const char* name) -> const char* {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

const std::map<std::string, std::string> kWorker = {
    {"WORLD_SIZE", "3"}, {"RANK", "1"}, {"MASTER_ADDR", "job-master-0"}, {"MASTER_PORT", "23456"}};

TEST(Environment, WithoutWorldSizeTheProcessIsAlone) {
  auto e = Read({});
  ASSERT_TRUE(e.ok());
  EXPECT_EQ(e->world_size, 1);
  EXPECT_EQ(e->rank, 0);
}

TEST(Environment, ReadsAWorker) {
  auto variables = kWorker;
  variables["LOCAL_RANK"] = "1";
  variables["LOCAL_WORLD_SIZE"] = "2";
  variables["GLOO_SOCKET_IFNAME"] = "eth1";
  auto e = Read(variables);
  ASSERT_TRUE(e.ok()) << e.error().message;
  EXPECT_EQ(e->world_size, 3);
  EXPECT_EQ(e->rank, 1);
  EXPECT_EQ(e->local_rank, 1);
  EXPECT_EQ(e->local_world_size, 2);
  EXPECT_EQ(e->master_addr, "job-master-0");
  EXPECT_EQ(e->master_port, 23456);
  EXPECT_EQ(e->interface, "eth1");
  EXPECT_FALSE(e->agent_hosts_store);
}

TEST(Environment, UnderTorchrunTheAgentHostsTheStore) {
  auto variables = kWorker;
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  variables["TORCHELASTIC_RESTART_COUNT"] = "2";
  auto e = Read(variables);
  ASSERT_TRUE(e.ok());
  EXPECT_TRUE(e->agent_hosts_store);
  EXPECT_EQ(e->attempt, "2");
}

TEST(Environment, NamesWhatIsMissing) {
  for (const char* name : {"RANK", "MASTER_ADDR", "MASTER_PORT"}) {
    auto variables = kWorker;
    variables.erase(name);
    auto e = Read(variables);
    ASSERT_FALSE(e.ok()) << name;
    EXPECT_EQ(e.error().kind, ErrorKind::kInvalid);
    EXPECT_THAT(e.error().message,
                HasSubstr(std::string("needs the environment variable ") + name));
  }
}

TEST(Environment, NamesWhatIsWrong) {
  for (auto [name, value] :
       {std::pair("RANK", "3"), std::pair("RANK", "-1"), std::pair("WORLD_SIZE", "two"),
        std::pair("MASTER_PORT", "99999"), std::pair("LOCAL_WORLD_SIZE", "4")}) {
    auto variables = kWorker;
    variables[name] = value;
    auto e = Read(variables);
    ASSERT_FALSE(e.ok()) << name;
    EXPECT_THAT(e.error().message, AllOf(HasSubstr(std::string(name) + "=" + value),
                                         HasSubstr("is not a number from")));
  }
}

}  // namespace
}  // namespace ddp
