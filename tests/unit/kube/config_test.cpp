#include "kube/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "kube/temp_folder.h"

namespace kube {
namespace {

using base::ErrorCode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// Sets variables (nullopt: removes them) and puts the old ones back.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::optional<std::string>>& variables) {
    for (const auto& [name, value] : variables) {
      const char* old = std::getenv(name.c_str());
      old_[name] = old == nullptr ? std::nullopt : std::optional<std::string>(old);
      Set(name, value);
    }
  }
  ~Environment() {
    for (const auto& [name, value] : old_) Set(name, value);
  }

 private:
  static void Set(const std::string& name, const std::optional<std::string>& value) {
    if (value) {
      setenv(name.c_str(), value->c_str(), 1);
    } else {
      unsetenv(name.c_str());
    }
  }
  std::map<std::string, std::optional<std::string>> old_;
};

constexpr const char* kWhole = R"(
apiVersion: v1
kind: Config
clusters:
- name: c1
  cluster: {server: "https://one:6443", certificate-authority: pki/ca.crt}
- name: c2
  cluster:
    server: https://two
    certificate-authority-data: Q0E=
    tls-server-name: api.internal
    proxy-url: http://proxy:3128
users:
- name: u1
  user: {client-certificate: /abs/a.crt, client-key: ../a.key}
- name: u2
  user: {client-certificate-data: Q1JU, client-key-data: S0VZ, token: tok, tokenFile: token}
contexts:
- name: x1
  context: {cluster: c1, user: u1, namespace: team}
- name: x2
  context: {cluster: c2, user: u2}
current-context: x1
)";

TEST(Config, ReadsTheCurrentContext) {
  TempFolder folder;
  const auto config = LoadConfig({folder.Write("sub/config", kWhole), ""});
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->server, "https://one:6443");
  EXPECT_EQ(config->ca_file, folder.Path("sub/pki/ca.crt"));
  EXPECT_EQ(config->client_cert_file, "/abs/a.crt");
  EXPECT_EQ(config->client_key_file, folder.Path("a.key"));
  EXPECT_EQ(config->default_namespace, "team");
  EXPECT_THAT(config->origin, HasSubstr(folder.Path("sub/config")));
}

TEST(Config, ReadsAnotherContextByName) {
  TempFolder folder;
  const auto config = LoadConfig({folder.Write("config", kWhole), "x2"});
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->server, "https://two");
  EXPECT_EQ(config->ca_data, "CA");
  EXPECT_EQ(config->tls_server_name, "api.internal");
  EXPECT_EQ(config->proxy_url, "http://proxy:3128");
  EXPECT_EQ(config->client_cert_data, "CRT");
  EXPECT_EQ(config->client_key_data, "KEY");
  EXPECT_EQ(config->token, "tok");
  EXPECT_EQ(config->token_file, folder.Path("token"));
  EXPECT_EQ(config->default_namespace, "default");
}

TEST(Config, ReadsJsonToo) {
  TempFolder folder;
  const auto config = LoadConfig({folder.Write("config", R"({"clusters":[{"name":"c","cluster":
      {"server":"http://h:1"}}],"contexts":[{"name":"x","context":{"cluster":"c"}}],
      "current-context":"x"})"),
                                  ""});
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->server, "http://h:1");
}

TEST(Config, MergesAListAsKubectlDoes) {
  TempFolder folder;
  const auto first = folder.Write("1", R"(
current-context: x
clusters: [{name: c, cluster: {server: "https://first"}}]
users: [])");
  const auto second = folder.Write("2", R"(
current-context: other
clusters:
- {name: c, cluster: {server: "https://second", tls-server-name: not-merged}}
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}])");
  const Environment environment(
      {{"KUBECONFIG", ":" + folder.Path("missing") + ":" + first + "::" + second + ":"}});
  const auto config = LoadConfig({});
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->server, "https://first");
  EXPECT_EQ(config->tls_server_name, "") << "an entry is taken whole from one file";
  EXPECT_EQ(config->token, "t");
}

TEST(Config, TheFlagGoesBeforeTheEnvironmentAndThatBeforeTheHome) {
  TempFolder folder;
  const auto config = [](const std::string& host) {
    return "clusters: [{name: c, cluster: {server: \"https://" + host +
           "\"}}]\ncontexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n";
  };
  const auto flag = folder.Write("flag", config("flag"));
  const auto variable = folder.Write("variable", config("variable"));
  folder.Write("home/.kube/config", config("home"));
  {
    const Environment environment({{"KUBECONFIG", variable}, {"HOME", folder.Path("home")}});
    EXPECT_EQ(LoadConfig({flag, ""})->server, "https://flag");
    EXPECT_EQ(LoadConfig({})->server, "https://variable");
  }
  const Environment environment({{"KUBECONFIG", std::nullopt}, {"HOME", folder.Path("home")}});
  EXPECT_EQ(LoadConfig({})->server, "https://home");
}

TEST(Config, InAClusterItIsThePodsServiceAccount) {
  TempFolder folder;
  for (const auto& [host, server] : {std::pair{"10.96.0.1", "https://10.96.0.1:443"},
                                     std::pair{"fd00::1", "https://[fd00::1]:443"}}) {
    const Environment environment({{"KUBECONFIG", std::nullopt},
                                   {"HOME", folder.Path("")},
                                   {"KUBERNETES_SERVICE_HOST", host},
                                   {"KUBERNETES_SERVICE_PORT", "443"}});
    const auto config = LoadConfig({});
    ASSERT_TRUE(config.ok());
    EXPECT_EQ(config->server, server);
    EXPECT_EQ(config->token_file, "/var/run/secrets/kubernetes.io/serviceaccount/token");
    EXPECT_EQ(config->ca_file, "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt");
    EXPECT_EQ(config->origin, "in-cluster");
  }
}

TEST(Config, NowhereIsAnErrorThatSaysWhereItLooked) {
  TempFolder folder;
  const Environment environment({{"KUBECONFIG", std::nullopt},
                                 {"HOME", folder.Path("")},
                                 {"KUBERNETES_SERVICE_HOST", std::nullopt}});
  const auto config = LoadConfig({});
  ASSERT_FALSE(config.ok());
  EXPECT_THAT(config.error().message, HasSubstr("KUBECONFIG"));
}

TEST(Config, ReadsAnExecPlugin) {
  TempFolder folder;
  const auto config = LoadConfig({folder.Write("config", R"(
clusters: [{name: c, cluster: {server: "https://h"}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
users:
- name: u
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./bin/login
      args: ["--for", "a b"]
      env: [{name: A, value: "1"}]
      provideClusterInfo: true
      interactiveMode: IfAvailable
      installHint: get it
)"),
                                  ""});
  ASSERT_TRUE(config.ok()) << config.error().message;
  ASSERT_TRUE(config->exec);
  EXPECT_EQ(config->exec->command, folder.Path("bin/login"));
  EXPECT_THAT(config->exec->args, ElementsAre("--for", "a b"));
  EXPECT_THAT(config->exec->env, ElementsAre(Pair("A", "1")));
  EXPECT_TRUE(config->exec->provide_cluster_info);
  EXPECT_EQ(config->exec->install_hint, "get it");
}

struct Wrong {
  const char* text;
  const char* said;
};

class WrongConfig : public testing::TestWithParam<Wrong> {};

TEST_P(WrongConfig, NamesFileAndField) {
  TempFolder folder;
  const auto path = folder.Write("config", GetParam().text);
  const auto config = LoadConfig({path, ""});
  ASSERT_FALSE(config.ok()) << GetParam().text;
  EXPECT_EQ(config.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(config.error().message, HasSubstr(path));
  EXPECT_THAT(config.error().message, HasSubstr(GetParam().said));
}

#define CONTEXT "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
#define CLUSTER "clusters: [{name: c, cluster: {server: 'https://h'}}]\n"
#define USER(fields) CONTEXT CLUSTER "users: [{name: u, user: {" fields "}}]\n"

INSTANTIATE_TEST_SUITE_P(
    All, WrongConfig,
    testing::Values(
        Wrong{"a: [", "not valid YAML"}, Wrong{"[]", "must be a map"},
        Wrong{"text", "must be a map"}, Wrong{"", "is empty"},
        Wrong{CLUSTER, "current-context: is not set"},
        Wrong{"current-context: x\n", "no context named \"x\""},
        Wrong{"current-context: x\ncontexts: {}\n", "contexts: must be a list"},
        Wrong{"current-context: x\ncontexts: [1]\n", "contexts[0]: must be a map"},
        Wrong{"current-context: x\ncontexts: [{name: x}]\n", "contexts[0].context: must be a map"},
        Wrong{"current-context: x\ncontexts: [{name: x, context: {user: u}}]\n",
              "contexts[0].context.cluster: is missing"},
        Wrong{CONTEXT, "no cluster named \"c\""},
        Wrong{CONTEXT "clusters: [{name: c, cluster: {}}]\n", "clusters[0].cluster.server"},
        Wrong{CONTEXT "clusters: [{name: c, cluster: {server: [1]}}]\n", "must be a string"},
        Wrong{CONTEXT
              "clusters: [{name: c, cluster: {server: s, certificate-authority-data: '*'}}]",
              "certificate-authority-data: is not valid base64"},
        Wrong{CONTEXT
              "clusters: [{name: c, cluster: {server: s, insecure-skip-tls-verify: maybe}}]",
              "must be true or false"},
        Wrong{CONTEXT CLUSTER, "no user named \"u\""},
        Wrong{USER("username: me"), "users[0].user.username: is not supported"},
        Wrong{USER("as: root"), "users[0].user.as: is not supported"},
        Wrong{USER("auth-provider: {name: gcp}"), "auth-provider: is not supported"},
        Wrong{USER("exec: {command: x, apiVersion: v1}"), "exec.apiVersion"},
        Wrong{USER("exec: {apiVersion: client.authentication.k8s.io/v1}"),
              "exec.command: is missing"},
        Wrong{USER("exec: []"), "exec: must be a map"},
        Wrong{USER("exec: {command: x, apiVersion: client.authentication.k8s.io/v1, args: y}"),
              "exec.args: must be a list"},
        Wrong{USER("exec: {command: x, apiVersion: client.authentication.k8s.io/v1, "
                   "interactiveMode: Always}"),
              "interactiveMode"}));

TEST(Config, AMissingFileOfTheFlagIsAnError) {
  const auto config = LoadConfig({"/nowhere/config", ""});
  ASSERT_FALSE(config.ok());
  EXPECT_THAT(config.error().message, HasSubstr("/nowhere/config"));
}

TEST(Transport, RefusesWhatItCannotUseAtOnce) {
  TempFolder folder;
  const auto refused = [](const Config& config) {
    const auto transport = MakeTransport(config);
    return transport.ok() ? std::string("nothing") : transport.error().message;
  };
  Config config;
  config.origin = "here";
  config.server = "h:1";
  EXPECT_THAT(refused(config), HasSubstr("here: server"));
  config.server = "https://h:1";
  config.ca_file = folder.Path("missing");
  EXPECT_THAT(refused(config), HasSubstr("certificate-authority: can't read " + config.ca_file));
  config.ca_file = folder.Write("ca", "no PEM");
  EXPECT_THAT(refused(config), HasSubstr("CA holds no certificate"));
  config.ca_file.clear();
  config.client_cert_data = "x";
  EXPECT_THAT(refused(config), HasSubstr("only one of them"));
  config.client_cert_data.clear();
  config.proxy_url = "socks5://p:1";
  EXPECT_THAT(refused(config), HasSubstr("proxy-url"));
  config.proxy_url.clear();
  EXPECT_EQ(refused(config), "nothing");
}

}  // namespace
}  // namespace kube
