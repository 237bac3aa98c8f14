#include "core/quantity.h"

#include <gtest/gtest.h>

#include "core/covers.h"

namespace core {
namespace {

struct Case {
  const char* text;
  const char* canonical;  // nullptr: refused
};

TEST(QuantityTest, ReadsWhatKubernetesReadsAndSaysItExactly) {
  static constexpr Case kCases[] = {
      {"0", "0"},
      {"1", "1"},
      {"1.5", "1500m"},
      {"250m", "250m"},
      {"0.1", "100m"},
      {"1Gi", "1073741824"},
      {"1.5Gi", "1610612736"},
      {"2k", "2000"},
      {"1e3", "1000"},
      {"1E3", "1000"},
      {"1e-3", "1m"},
      {"1E", "1000000000000000000"},
      {"100u", "100u"},
      {"3n", "3n"},
      {".5", "500m"},
      {"5.", "5"},
      {"-1", "-1"},
      {"+2", "2"},
      {"7Ei", "8070450532247928832"},
      {"", nullptr},
      {"abc", nullptr},
      {"1Q", nullptr},
      {"1..2", nullptr},
      {"16Ei", nullptr},
      {"1e", nullptr},
      {"--1", nullptr},
      {"99999999999999999999", nullptr},
  };
  for (const Case& c : kCases) {
    auto quantity = Quantity::Parse(c.text);
    ASSERT_EQ(quantity.has_value(), c.canonical != nullptr) << c.text;
    if (quantity) EXPECT_EQ(quantity->Format(), c.canonical) << c.text;
  }
}

TEST(QuantityTest, Adds) {
  Quantity sum = *Quantity::Parse("900m");
  sum += *Quantity::Parse("0.1");
  EXPECT_EQ(sum, *Quantity::Parse("1"));
}

TEST(CoversTest, IgnoresWhatTheServerAddedAndHowQuantitiesAreWritten) {
  const Json wanted = Json::parse(R"({"a": 1, "q": "0.5", "l": [{"x": "1Gi"}]})");
  EXPECT_TRUE(
      Covers(Json::parse(R"({"a": 1, "q": "500m", "l": [{"x": "1024Mi"}], "b": 2})"), wanted));
  EXPECT_FALSE(Covers(Json::parse(R"({"a": 2, "q": "500m", "l": [{"x": "1Gi"}]})"), wanted));
  EXPECT_FALSE(Covers(Json::parse(R"({"a": 1, "q": "501m", "l": [{"x": "1Gi"}]})"), wanted));
  EXPECT_FALSE(Covers(Json::parse(R"({"a": 1, "q": "500m", "l": []})"), wanted));
  EXPECT_FALSE(Covers(Json::parse(R"({"a": 1, "q": "500m"})"), wanted));
}

}  // namespace
}  // namespace core
