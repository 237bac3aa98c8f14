#include "kube/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/temp_folder.h"

namespace kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::HasSubstr;

const steady_clock::time_point kStart{seconds(1000)};

TEST(Credentials, LooksForANewTokenOnceASecond) {
  TempFolder folder;
  Config config;
  config.token_file = folder.Write("token", " first\n");
  Credentials credentials(config);
  EXPECT_EQ(credentials.Current(kStart)->token, "first");
  folder.Write("token", "second!");
  EXPECT_EQ(credentials.Current(kStart + milliseconds(999))->token, "first");
  EXPECT_EQ(credentials.Current(kStart + seconds(1))->token, "second!");
}

TEST(Credentials, DistrustLooksAtOnce) {
  TempFolder folder;
  Config config;
  config.token_file = folder.Write("token", "first");
  Credentials credentials(config);
  EXPECT_EQ(credentials.Current(kStart)->token, "first");
  folder.Write("token", "second!");
  credentials.Distrust();
  EXPECT_EQ(credentials.Current(kStart)->token, "second!");
}

TEST(Credentials, AFileThatVanishesOrIsTruncatedKeepsItsLastValue) {
  TempFolder folder;
  Config config;
  config.token_file = folder.Write("token", "first");
  Credentials credentials(config);
  EXPECT_EQ(credentials.Current(kStart)->token, "first");
  folder.Write("token", "");
  EXPECT_EQ(credentials.Current(kStart + seconds(1))->token, "first");
  std::filesystem::remove(config.token_file);
  EXPECT_EQ(credentials.Current(kStart + seconds(2))->token, "first");
  folder.Write("token", "second!");
  EXPECT_EQ(credentials.Current(kStart + seconds(3))->token, "second!");
}

TEST(Credentials, AFileThatWasNeverThereIsAnErrorUnlessThereIsAToken) {
  Config config;
  config.origin = "here";
  config.token_file = "/nowhere/token";
  const auto missing = Credentials(config).Current(kStart);
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().message, HasSubstr("here: tokenFile: can't read /nowhere/token"));
  config.token = "given";
  EXPECT_EQ(Credentials(config).Current(kStart)->token, "given");
}

TEST(Credentials, TheFileWinsOverTheToken) {
  TempFolder folder;
  Config config;
  config.token = "given";
  config.token_file = folder.Write("token", "read");
  EXPECT_EQ(Credentials(config).Current(kStart)->token, "read");
}

TEST(Credentials, AGenerationIsNewWhenTlsMaterialIs) {
  TempFolder folder;
  Config config;
  config.ca_file = folder.Write("ca", "one");
  config.client_cert_file = folder.Write("crt", "c");
  config.client_key_file = folder.Write("key", "k");
  Credentials credentials(config);
  const long first = credentials.Current(kStart)->tls_generation;
  EXPECT_EQ(credentials.Current(kStart + seconds(1))->tls_generation, first);
  folder.Write("ca", "another");
  const auto changed = credentials.Current(kStart + seconds(2));
  EXPECT_NE(changed->tls_generation, first);
  EXPECT_EQ(changed->tls.ca, "another");
  EXPECT_EQ(changed->tls.client_cert, "c");
}

TEST(Credentials, DataWinsOverFilesWhichAreNotEvenRead) {
  Config config;
  config.ca_file = "/nowhere";
  config.ca_data = "data";
  EXPECT_EQ(Credentials(config).Current(kStart)->tls.ca, "data");
}

TEST(Credentials, AnAtomicallyReplacedLinkIsSeen) {
  // As the kubelet rotates projected volumes: the files stay, the folder behind a link changes.
  TempFolder folder;
  folder.Write("old/token", "first");
  folder.Write("new/token", "other");  // of the same size
  std::filesystem::create_symlink("old", folder.Path("data"));
  Config config;
  config.token_file = folder.Path("data/token");
  Credentials credentials(config);
  EXPECT_EQ(credentials.Current(kStart)->token, "first");
  std::filesystem::create_symlink("new", folder.Path("next"));
  std::filesystem::rename(folder.Path("next"), folder.Path("data"));
  EXPECT_EQ(credentials.Current(kStart + seconds(1))->token, "other");
}

TEST(Credentials, RunsThePluginAgainWhenItsCredentialHasExpired) {
  TempFolder folder;
  Config config;
  const auto script = [&](const std::string& lifetime) {
    return "#!/bin/sh\necho x >>" + folder.Path("runs") + "\nn=$(wc -l <" + folder.Path("runs") +
           ")\nprintf '{\"status\":{\"token\":\"t%s\"" + lifetime + "}}' $n\n";
  };
  config.exec = ExecPlugin{};
  config.exec->command = folder.Write("plugin", script(""), true);
  Credentials for_ever(config);
  EXPECT_EQ(for_ever.Current(kStart)->token, "t1");
  EXPECT_EQ(for_ever.Current(kStart + seconds(100000))->token, "t1");
  for_ever.Distrust();
  EXPECT_EQ(for_ever.Current(kStart + seconds(100000))->token, "t2");

  config.exec->command =
      folder.Write("expired", script(",\"expirationTimestamp\":\"2001-01-01T00:00:00Z\""), true);
  Credentials expired(config);
  EXPECT_EQ(expired.Current(kStart)->token, "t3");
  EXPECT_EQ(expired.Current(kStart + milliseconds(999))->token, "t3") << "not for every request";
  EXPECT_EQ(expired.Current(kStart + seconds(1))->token, "t4");
}

}  // namespace
}  // namespace kube
