// tests/golden/cases: what the operator decides for a job at one moment, as files that a person can
// read. UPDATE_GOLDEN=1 rewrites the plans.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "kit.h"

namespace core::test {
namespace {

namespace fs = std::filesystem;

const fs::path kCases = fs::path(SOURCE_DIR) / "tests" / "golden" / "cases";

std::string ReadText(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A file of the case; null when there is none.
Json ReadCase(const fs::path& path) { return fs::exists(path) ? FromYaml(ReadText(path)) : Json(); }

std::vector<std::string> CaseNames() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kCases)) {
    if (entry.is_directory()) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// What a case says of a child, over what every child of the job has.
Json Child(const Json& job, const Json& given) {
  Json child = {{"metadata", OwnedMetadata(job, given["metadata"]["name"])}};
  child.merge_patch(given);
  return child;
}

NodeState ParseNodeState(const std::string& text) {
  if (text == "Gone") return NodeState::kGone;
  if (text == "NotReady") return NodeState::kNotReady;
  if (text == "OutOfService") return NodeState::kOutOfService;
  return NodeState::kHealthy;
}

// options.yaml: flags of the operator and what else it knows, all optional:
// {initContainerImage, servicePerReplica, gangScheduler, crdOutdated, services: [name],
//  holders: [{kind, name, description, terminating}], refused: [{name, message}],
//  departed: [pod], nodes: {name: state}, podGroup, statusWritten}
Snapshot ReadSnapshot(const fs::path& dir, TimePoint now, Options* options) {
  Scene scene(ReadCase(dir / "job.yaml"));
  for (const Json& pod : ReadCase(dir / "pods.yaml")) {
    scene.pods[pod["metadata"]["name"]] = Child(scene.job, pod);
  }
  Json more = ReadCase(dir / "options.yaml");
  if (more.is_null()) more = Json::object();
  options->init_container_image = more.value("initContainerImage", "");
  options->service_per_replica = more.value("servicePerReplica", false);
  options->gang_scheduler = more.value("gangScheduler", "");
  options->crd_outdated = more.value("crdOutdated", false);
  for (const Json& name : more.value("services", Json::array())) {
    scene.services[name] = Child(scene.job, {{"metadata", {{"name", name}}}});
  }
  for (const Json& holder : more.value("holders", Json::array())) {
    scene.holders.push_back({holder["kind"] == "Service" ? Kind::kService : Kind::kPod,
                             holder["name"], holder["description"],
                             holder.value("terminating", false)});
  }
  for (const Json& refused : more.value("refused", Json::array())) {
    scene.create_errors.push_back({Kind::kPod, refused["name"], base::ErrorCode::kForbidden,
                                   refused["message"], now, refused.value("tries", 1)});
  }
  const Json nodes = more.value("nodes", Json::object());
  for (const auto& [name, state] : nodes.items()) {
    scene.nodes[name] = ParseNodeState(state);
  }
  if (more.contains("podGroup")) scene.pod_group = Child(scene.job, more["podGroup"]);
  Snapshot snapshot = scene.Observe();
  for (const Json& gone : more.value("departed", Json::array())) {
    snapshot.departed.push_back(
        {std::make_shared<const Pod>(DecodePod(Child(scene.job, gone["pod"]).dump()).value()),
         *ParseTime(gone["gone"].get<std::string>())});
  }
  return snapshot;
}

Json Shown(const std::vector<Event>& events) {
  Json lines = Json::array();
  for (const std::string& line : Lines(events)) lines.push_back(line);
  return lines;
}

Json Shown(const Plan& plan) {
  Json actions = Json::array();
  for (const Action& action : plan.actions) {
    if (auto* a = std::get_if<WriteStatus>(&action)) {
      Json shown = {{"writeStatus", Json::parse(a->patch)}};
      if (!a->events.empty()) shown["events"] = Shown(a->events);
      actions.push_back(shown);
    } else if (auto* a = std::get_if<Create>(&action)) {
      actions.push_back({{"create", Json::parse(a->body)}});
    } else if (auto* a = std::get_if<Delete>(&action)) {
      Json shown = {{"kind", Name(a->kind)}, {"name", a->name}, {"uid", a->uid}};
      if (a->grace_seconds) shown["graceSeconds"] = *a->grace_seconds;
      actions.push_back({{"delete", shown}});
    } else if (auto* a = std::get_if<Patch>(&action)) {
      actions.push_back({{"patch", {{"kind", Name(a->kind)}, {"name", a->name}}},
                         {"body", Json::parse(a->body)}});
    }
  }
  Json shown = {{"actions", actions}, {"why", plan.why}};
  if (plan.look_again_at) shown["lookAgainAt"] = FormatTime(*plan.look_again_at);
  if (!plan.ask_nodes.empty()) shown["askNodes"] = plan.ask_nodes;
  return shown;
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, Plan) {
  const fs::path dir = kCases / GetParam();
  std::string time = ReadText(dir / "now");
  time.erase(time.find_last_not_of('\n') + 1);
  const auto now = ParseTime(time);
  ASSERT_TRUE(now) << "the file now is no time: " << time;
  Options options;
  const Snapshot snapshot = ReadSnapshot(dir, *now, &options);
  const Json plan = Shown(Decide(snapshot, *now, options));
  const fs::path file = dir / "plan.json";
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(file) << plan.dump(2) << "\n";
    return;
  }
  ASSERT_TRUE(fs::exists(file)) << "run with UPDATE_GOLDEN=1, then read " << file;
  const Json expected = Json::parse(ReadText(file));
  EXPECT_EQ(plan, expected) << "differs from " << file << " by "
                            << Json::diff(expected, plan).dump(2)
                            << "\nwhere that is right, run with UPDATE_GOLDEN=1";
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, ::testing::ValuesIn(CaseNames()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace core::test
