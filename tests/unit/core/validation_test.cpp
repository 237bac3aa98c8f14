#include "core/validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace core {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::filesystem::path kTables =
    std::filesystem::path(SOURCE_DIR) / "tests" / "golden" / "validation";

Json ReadJson(const std::filesystem::path& path) {
  std::ifstream file(path);
  return Json::parse(file);
}

Json Patched(const Json& patch) {
  Json job = ReadJson(kTables / "base.json");
  job.merge_patch(patch);
  return job;
}

std::map<std::string, std::string> ByPath(const std::vector<FieldError>& errors) {
  std::map<std::string, std::string> result;
  for (const FieldError& error : errors) {
    EXPECT_TRUE(result.emplace(error.path, error.message).second) << error.path << " twice";
  }
  return result;
}

class ValidationTable : public ::testing::TestWithParam<std::string> {};

TEST_P(ValidationTable, RejectsTheBadAndAcceptsTheirNeighbours) {
  const Json table = ReadJson(kTables / (GetParam() + ".json"));
  ASSERT_FALSE(table["rules"].empty());
  for (const Json& rule : table["rules"]) {
    ASSERT_FALSE(rule["bad"].empty()) << rule["rule"];
    for (const Json& bad : rule["bad"]) {
      SCOPED_TRACE(rule["rule"].get<std::string>() + ": " + bad["patch"].dump());
      auto found = ByPath(Validate(Patched(bad["patch"])));
      for (const Json& error : bad["errors"]) {
        const std::string path = error["path"];
        EXPECT_TRUE(found.contains(path)) << "no error at " << path;
        EXPECT_THAT(found[path], HasSubstr(error["message"].get<std::string>())) << path;
        found.erase(path);
      }
      for (const auto& [path, message] : found) ADD_FAILURE() << "also " << path << ": " << message;
    }
    for (const Json& good : rule["good"]) {
      EXPECT_EQ(Describe(Validate(Patched(good))), "") << rule["rule"] << ": " << good;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, ValidationTable,
                         ::testing::Values("replicas", "template", "elastic", "run_policy", "name"),
                         [](const auto& info) { return info.param; });

TEST(Validation, EveryTableIsRead) {
  size_t tables = 0;
  for (const auto& file : std::filesystem::directory_iterator(kTables)) {
    tables += file.path().extension() == ".json";
  }
  EXPECT_EQ(tables, 5u + 2u) << "name a new table in INSTANTIATE_TEST_SUITE_P above";
}

TEST(Validation, NullCountsAsMissing) {
  Json job = Patched(Json::object());
  job["spec"]["runPolicy"] = nullptr;
  job["spec"]["elasticPolicy"] = nullptr;
  job["spec"]["nprocPerNode"] = nullptr;
  Json& worker = job["spec"]["pytorchReplicaSpecs"]["Worker"];
  worker["replicas"] = nullptr;
  worker["restartPolicy"] = nullptr;
  worker["template"]["metadata"] = nullptr;
  worker["template"]["spec"]["initContainers"] = nullptr;
  worker["template"]["spec"]["containers"][0]["resources"]["limits"] = nullptr;
  job["spec"]["pytorchReplicaSpecs"]["Launcher"] = nullptr;
  EXPECT_EQ(Describe(Validate(job)), "");

  job["spec"]["pytorchReplicaSpecs"] = {{"Worker", nullptr}};
  EXPECT_EQ(ByPath(Validate(job)).count("spec.pytorchReplicaSpecs"), 1u);
}

TEST(Validation, ReportsInTheOrderOfTheSpecification) {
  const Json job = Patched({{"metadata", {{"name", "A"}}},
                            {"spec",
                             {{"runPolicy", {{"backoffLimit", -1}}},
                              {"nprocPerNode", "x"},
                              {"pytorchReplicaSpecs", {{"Master", {{"replicas", 2}}}}}}}});
  std::vector<std::string> paths;
  for (const FieldError& error : Validate(job)) paths.push_back(error.path);
  EXPECT_THAT(paths,
              ::testing::ElementsAre("metadata.name", "spec.pytorchReplicaSpecs.Master.replicas",
                                     "spec.nprocPerNode", "spec.runPolicy.backoffLimit"));
}

// Calls `visit` with the job after each single node of it was replaced by `value`.
void ReplaceEachNode(const Json& job, const Json& value,
                     const std::function<void(const Json&, const std::string&)>& visit) {
  const Json flat = job.flatten();
  std::set<std::string> pointers = {""};
  for (const auto& [pointer, leaf] : flat.items()) {
    for (size_t slash = 0; slash != std::string::npos; slash = pointer.find('/', slash + 1)) {
      pointers.insert(pointer.substr(0, slash));
    }
    pointers.insert(pointer);
  }
  for (const std::string& pointer : pointers) {
    Json changed = job;
    changed[Json::json_pointer(pointer)] = value;
    visit(changed, pointer);
  }
}

TEST(Validation, AnyShapeIsReportedAndNeverThrown) {
  const Json full =
      Patched({{"spec",
                {{"nprocPerNode", "auto"},
                 {"elasticPolicy",
                  {{"minReplicas", 1},
                   {"maxReplicas", 4},
                   {"rdzvConf", {{{"key", "k"}, {"value", "v"}}}},
                   {"metrics", {{{"type", "Resource"}}}}}},
                 {"runPolicy",
                  {{"suspend", true},
                   {"schedulingPolicy", {{"queue", "q"}, {"minResources", {{"cpu", "1"}}}}}}}}}});
  ASSERT_EQ(Describe(Validate(full)), "");
  const std::vector<Json> values = {nullptr,
                                    true,
                                    -1,
                                    1.5,
                                    18446744073709551615u,
                                    INT64_MIN,
                                    "",
                                    "\xc3\xa9\xf0\x9f\x94\xa5",
                                    std::string(100000, 'x'),
                                    Json::array(),
                                    Json::array({nullptr, 1, "a", Json::object()}),
                                    Json::object(),
                                    Json{{"a", {{"b", Json::array({1})}}}},
                                    std::nan("")};
  size_t tried = 0;
  for (const Json& value : values) {
    ReplaceEachNode(full, value, [&](const Json& changed, const std::string& pointer) {
      ++tried;
      for (const FieldError& error : Validate(changed)) {
        EXPECT_LT(error.message.size(), 400u) << pointer;
        EXPECT_NO_THROW((void)Json(error.message).dump()) << "not UTF-8: " << pointer;
      }
    });
  }
  EXPECT_GT(tried, 300u);
  for (const Json& value : values) EXPECT_FALSE(Validate(value).empty()) << value.type_name();
}

TEST(Validation, QuotesNoMoreThanTheStartOfAValue) {
  std::string long_value(63, 'x');
  for (int i = 0; i < 10; ++i) long_value += "\xf0\x9f\x94\xa5";  // would be cut inside
  const auto errors = Validate(Patched({{"spec", {{"nprocPerNode", long_value}}}}));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].message, "Invalid value: \"" + std::string(63, 'x') +
                                   "…\": should match auto, cpu, gpu or a positive number");
}

TEST(Validation, AHostileObjectCostsLittle) {
  Json job = Patched(Json::object());
  Json& containers = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"];
  for (int i = 0; i < 10000; ++i) containers.push_back(Json::object());
  EXPECT_EQ(Validate(job).size(), 100u);
}

TEST(Describe, JoinsAndCountsWhatDoesNotFit) {
  EXPECT_EQ(Describe({}), "");
  const std::vector<FieldError> errors = {{"a", "one"}, {"b", "two"}, {"c", "three"}};
  EXPECT_EQ(Describe(errors), "a: one; b: two; c: three");
  EXPECT_EQ(Describe(errors, 14), "a: one; b: two; and 1 more");
  EXPECT_EQ(Describe(errors, 1), "a: one; and 2 more");
}

}  // namespace
}  // namespace core
