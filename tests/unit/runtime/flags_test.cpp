#include "runtime/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/json.h"
#include "runtime/log.h"
#include "runtime/nodes.h"
#include "runtime/parallel.h"
#include "runtime/probes.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

std::variant<Flags, EarlyExit> Parse(std::vector<const char*> arguments,
                                     const std::string& default_namespace = "") {
  arguments.insert(arguments.begin(), "pytorch-operator");
  return ParseFlags(static_cast<int>(arguments.size()), arguments.data(), "1.2.3",
                    default_namespace);
}
Flags Good(const std::vector<const char*>& arguments, const std::string& ns = "") {
  auto parsed = Parse(arguments, ns);
  if (auto* early = std::get_if<EarlyExit>(&parsed)) {
    ADD_FAILURE() << early->text;
    return {};
  }
  return std::get<Flags>(parsed);
}
EarlyExit Bad(const std::vector<const char*>& arguments) {
  auto parsed = Parse(arguments);
  if (std::holds_alternative<Flags>(parsed)) {
    ADD_FAILURE() << "accepted";
    return {};
  }
  return std::get<EarlyExit>(parsed);
}

TEST(FlagsTest, Defaults) {
  const Flags flags = Good({});
  EXPECT_EQ(flags.controller_threads, 4);
  EXPECT_TRUE(flags.namespaces.empty());
  EXPECT_FALSE(flags.leader_elect);
  EXPECT_EQ(flags.metrics_address, ":8080");
  EXPECT_EQ(flags.health_address, ":8081");
  EXPECT_EQ(flags.stuck_pod_timeout, 300s);
  EXPECT_EQ(flags.client_qps, 0);
}

TEST(FlagsTest, EachFlagIsTaken) {
  const Flags flags = Good({"--kubeconfig=k",
                            "--context",
                            "c",
                            "--namespace=b",
                            "--namespace",
                            "a",
                            "--namespace=b",
                            "--controller-threads=7",
                            "--leader-elect",
                            "--leader-elect-namespace=l",
                            "--client-qps=2.5",
                            "--max-in-flight=9",
                            "--metrics-bind-address=0",
                            "--health-probe-bind-address=:1",
                            "--gang-scheduler-name=volcano",
                            "--init-container-image=i",
                            "--service-per-replica",
                            "--stuck-pod-timeout=5m",
                            "--log-level=debug",
                            "--log-format=json"});
  EXPECT_EQ(flags.kubeconfig, "k");
  EXPECT_EQ(flags.context, "c");
  EXPECT_THAT(flags.namespaces, ElementsAre("a", "b"));
  EXPECT_EQ(flags.controller_threads, 7);
  EXPECT_TRUE(flags.leader_elect);
  EXPECT_EQ(flags.leader_elect_namespace, "l");
  EXPECT_EQ(flags.client_qps, 2.5);
  EXPECT_EQ(flags.max_in_flight, 9);
  EXPECT_EQ(flags.metrics_address, "0");
  EXPECT_EQ(flags.health_address, ":1");
  EXPECT_EQ(flags.gang_scheduler, "volcano");
  EXPECT_EQ(flags.init_container_image, "i");
  EXPECT_TRUE(flags.service_per_replica);
  EXPECT_EQ(flags.stuck_pod_timeout, 300s);
  EXPECT_EQ(flags.log_level, "debug");
  EXPECT_EQ(flags.log_format, "json");
}

TEST(FlagsTest, TheEnvironmentsNamespaceIsADefault) {
  EXPECT_THAT(Good({}, "team").namespaces, ElementsAre("team"));
  EXPECT_THAT(Good({"--namespace=a"}, "team").namespaces, ElementsAre("a"));
}

TEST(FlagsTest, AWrongFlagIsAnsweredWithTheClosestRightOne) {
  for (auto [wrong, right] : {std::pair{"--leader-elekt", "--leader-elect?"},
                              {"--contoller-threads=3", "--controller-threads?"},
                              {"--namespaces=a", "--namespace?"},
                              {"--metrics-addr=:1", "--metrics-bind-address?"}}) {
    const EarlyExit exit = Bad({wrong});
    EXPECT_EQ(exit.code, 2);
    EXPECT_THAT(exit.text, HasSubstr(right));
  }
}

TEST(FlagsTest, WrongValuesNameTheFlag) {
  for (const char* wrong :
       {"--controller-threads=0", "--controller-threads=x", "--max-in-flight=0", "--client-qps=-1",
        "--log-level=loud", "--log-format=xml", "--stuck-pod-timeout=soon"}) {
    const EarlyExit exit = Bad({wrong});
    EXPECT_EQ(exit.code, 2) << wrong;
    const std::string flag(wrong, std::string_view(wrong).find('='));
    EXPECT_THAT(exit.text, HasSubstr(flag));
  }
  EXPECT_EQ(Bad({"job.yaml"}).code, 2);
}

TEST(FlagsTest, VersionAndHelp) {
  EXPECT_EQ(Bad({"--version"}).code, 0);
  EXPECT_EQ(Bad({"--version"}).text, "pytorch-operator 1.2.3\n");
  const EarlyExit help = Bad({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.text, HasSubstr("--stuck-pod-timeout"));
}

TEST(LogTest, JsonLinesAreJsonWhateverTheMessage) {
  const std::string message = "a \"quoted\"\nline \x01 \xff end";
  const core::Json line = core::Json::parse(JsonLogLine("t", "info", message), nullptr, false);
  ASSERT_TRUE(line.is_object());
  EXPECT_EQ(line["level"], "info");
  EXPECT_THAT(line["message"].get<std::string>(), HasSubstr("a \"quoted\"\nline"));
}

TEST(NodesTest, WhatANodeSaysOfItself) {
  auto state = [](const std::string& json) { return *ReadNode(json); };
  using core::NodeState;
  EXPECT_EQ(state(R"({"status":{"conditions":[{"type":"Ready","status":"True"}]}})"),
            NodeState::kHealthy);
  EXPECT_EQ(state(R"({"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}})"),
            NodeState::kNotReady);
  EXPECT_EQ(state("{}"), NodeState::kNotReady);
  EXPECT_EQ(state(R"({"spec":{"taints":[{"key":"node.kubernetes.io/out-of-service"}]},)"
                  R"("status":{"conditions":[{"type":"Ready","status":"True"}]}})"),
            NodeState::kOutOfService);
  EXPECT_EQ(*ReadNode(base::Error{base::ErrorCode::kNotFound, "", {}}), NodeState::kGone);
  EXPECT_EQ(ReadNode(base::Error{base::ErrorCode::kForbidden, "no", {}}).error().code,
            base::ErrorCode::kForbidden);
  EXPECT_FALSE(ReadNode(std::string("[]")).ok());
}

TEST(ParallelTest, EachIndexOnceAndNeverMoreThanTheWidth) {
  std::array<std::atomic<int>, 100> calls{};
  std::atomic<int> inside{0}, most{0};
  ForEachParallel(calls.size(), 5, [&](std::size_t i) {
    const int now = ++inside;
    int seen = most;
    while (now > seen && !most.compare_exchange_weak(seen, now)) {
    }
    ++calls[i];
    --inside;
  });
  for (auto& n : calls) EXPECT_EQ(n, 1);
  EXPECT_LE(most, 5);
  ForEachParallel(0, 5, [](std::size_t) { FAIL(); });
}

TEST(ProbesTest, ReadyTellsWhyNot) {
  std::string why = "watch of pods: 403";
  const ProbeSources sources{[&] { return why; }, [] { return std::string("metric 1\n"); }};
  const kube::Handler health = HealthHandler(sources), metrics = MetricsHandler(sources);
  EXPECT_EQ(health({"GET", "/healthz", {}}).status, 200);
  EXPECT_EQ(health({"GET", "/readyz", {}}).status, 503);
  EXPECT_THAT(health({"GET", "/readyz", {}}).body, HasSubstr(why));
  why.clear();
  EXPECT_EQ(health({"GET", "/readyz", {}}).status, 200);
  EXPECT_EQ(health({"GET", "/metrics", {}}).status, 404);
  EXPECT_EQ(metrics({"GET", "/metrics", {}}).body, "metric 1\n");
  EXPECT_EQ(metrics({"GET", "/", {}}).status, 404);
}

}  // namespace
}  // namespace runtime
