#include "kube/exec_plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/temp_folder.h"

namespace kube {
namespace {

using base::ErrorCode;
using std::chrono::system_clock;
using testing::HasSubstr;

const system_clock::time_point kNow =
    system_clock::from_time_t(1767225600);  // 2026-01-01T00:00:00Z

std::string Printed(const std::string& status) { return R"({"status":)" + status + "}"; }

TEST(ExecCredential, HasATokenOrACertificate) {
  EXPECT_EQ(ParseExecCredential(Printed(R"({"token":"t"})"), kNow)->token, "t");
  const auto certificate =
      ParseExecCredential(Printed(R"({"clientCertificateData":"C","clientKeyData":"K"})"), kNow);
  EXPECT_EQ(certificate->client_cert, "C");
  EXPECT_EQ(certificate->client_key, "K");
  EXPECT_FALSE(certificate->lifetime) << "for ever";
}

TEST(ExecCredential, KnowsWhenItEnds) {
  const auto seconds = [](const std::string& time) {
    const auto credential = ParseExecCredential(
        Printed(R"({"token":"t","expirationTimestamp":")" + time + R"("})"), kNow);
    return credential.ok() ? credential->lifetime->count() / 1000 : -1;
  };
  EXPECT_EQ(seconds("2026-01-01T01:00:00Z"), 3600);
  EXPECT_EQ(seconds("2026-01-01T01:00:00.25Z"), 3600);
  EXPECT_EQ(seconds("2026-01-01T01:00:00+01:00"), 0);
  EXPECT_EQ(seconds("2026-01-01T01:00:00-00:30"), 5400);
  EXPECT_EQ(seconds("tomorrow"), -1);
  EXPECT_EQ(seconds("2026-01-01T01:00:00"), -1);
}

TEST(ExecCredential, RefusesWhatIsNone) {
  for (const std::string& text :
       {std::string(), std::string("x"), std::string("[]"), Printed("{}"), Printed("1"),
        Printed(R"({"token":1})"), Printed(R"({"clientCertificateData":"C"})")}) {
    const auto credential = ParseExecCredential(text, kNow);
    ASSERT_FALSE(credential.ok()) << text;
    EXPECT_EQ(credential.error().code, ErrorCode::kUnauthorized);
  }
}

class Plugin : public testing::Test {
 protected:
  base::Result<ExecCredential> Run(const std::string& script, std::vector<std::string> args = {}) {
    const auto path = folder_.Write("plugin", "#!/bin/sh\n" + script, true);
    return RunExecPlugin({path, std::move(args), {{"GIVEN", "a b"}}, "v", false, "get it"}, config_,
                         kNow);
  }
  static std::string Token(const std::string& value) {
    return "printf '{\"status\":{\"token\":\"%s\"}}' \"" + value + "\"\n";
  }
  TempFolder folder_;
  Config config_;
};

TEST_F(Plugin, GetsArgumentsAndEnvironmentUntouched) {
  EXPECT_EQ(Run(Token("$1,$2,$GIVEN"), {"$(id);'", "x  y"})->token, "$(id);',x  y,a b");
}

TEST_F(Plugin, ReadsNothing) { EXPECT_EQ(Run("read x && exit 1\n" + Token("t"))->token, "t"); }

TEST_F(Plugin, FailuresSayWhatHappened) {
  EXPECT_THAT(Run("exit 3\n").error().message, HasSubstr("exit code 3"));
  EXPECT_THAT(Run("kill -9 $$\n").error().message, HasSubstr("signal 9"));
  EXPECT_THAT(Run("echo x\n").error().message, HasSubstr("ExecCredential"));
  EXPECT_THAT(Run("head -c 2000000 /dev/zero\n").error().message, HasSubstr("1 MiB"));
  const auto missing =
      RunExecPlugin({folder_.Path("none"), {}, {}, "v", false, "get it"}, {}, kNow);
  EXPECT_THAT(missing.error().message, HasSubstr("get it"));
  EXPECT_EQ(missing.error().code, ErrorCode::kUnauthorized);
}

}  // namespace
}  // namespace kube
