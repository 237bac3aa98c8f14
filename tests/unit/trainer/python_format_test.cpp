#include "mnist/python_format.h"

#include <gtest/gtest.h>

namespace mnist {
namespace {

// The right column is what Python 3.11 prints for repr(x).
TEST(PythonRepr, EqualsPythons) {
  const std::pair<double, const char*> kCases[] = {
      {0.0, "0.0"},
      {-0.0, "-0.0"},
      {2.0, "2.0"},
      {0.1, "0.1"},
      {0.0001, "0.0001"},
      {0.00001, "1e-05"},
      {0.000123456, "0.000123456"},
      {1e15, "1000000000000000.0"},
      {1e16, "1e+16"},
      {123456789012345680.0, "1.2345678901234568e+17"},
      {1.0 / 3, "0.3333333333333333"},
      {5e-324, "5e-324"},
      {1.7976931348623157e308, "1.7976931348623157e+308"},
      {static_cast<double>(0.04400685429573059f), "0.04400685429573059"},
      {static_cast<double>(2.3f), "2.299999952316284"},
      {static_cast<double>(0.1f), "0.10000000149011612"},
      {static_cast<double>(1e-5f), "9.999999747378752e-06"},
      {-12.5, "-12.5"},
  };
  for (const auto& [value, text] : kCases) EXPECT_EQ(PythonRepr(value), text);
}

TEST(Percent, KeepsTheSpaceFlagAndTheWidth) {
  EXPECT_EQ(Percent(256, 313), " 81.8%");
  EXPECT_EQ(Percent(0, 313), "  0.0%");
  EXPECT_EQ(Percent(10000, 10000), " 100.0%");
  EXPECT_EQ(Percent(9814, 10000), " 98.1%");
}

TEST(Percent, RoundsAsPythonDoes) {
  EXPECT_EQ(WholePercent(10, 938), "1%");
  EXPECT_EQ(WholePercent(1, 200), "0%");  // 0.5 goes to the even neighbour
  EXPECT_EQ(WholePercent(3, 200), "2%");
  EXPECT_EQ(Fixed(0.05675, 4), "0.0568");
  EXPECT_EQ(Fixed(0.98140, 4), "0.9814");
}

}  // namespace
}  // namespace mnist
