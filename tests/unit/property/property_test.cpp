#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <sstream>

#include "property/world.h"

namespace model {
namespace {

// How many histories, and from which seed on: PROPERTY_SEEDS, PROPERTY_SEED.
uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// RapidCheck's sizes decide how long a history is.
constexpr int kSizes = 90;

rc::Shrinkable<History> Generate(uint64_t seed) {
  static const auto kHistories = Histories();
  return kHistories(rc::Random(seed), 10 + static_cast<int>(seed % kSizes));
}

// The smallest history that RapidCheck finds to fail.
History Shrink(rc::Shrinkable<History> failing) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (auto shrinks = failing.shrinks();;) {
      auto next = shrinks.next();
      if (!next) break;
      if (!model::Run(next->value())) continue;
      failing = *next;
      smaller = true;
      break;
    }
  }
  return failing.value();
}

TEST(Property, ContractHoldsInEveryHistory) {
  const uint64_t seeds = FromEnvironment("PROPERTY_SEEDS", 4000);
  const uint64_t first = FromEnvironment("PROPERTY_SEED", 1);
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    rc::Shrinkable<History> history = Generate(seed);
    if (!model::Run(history.value())) continue;
    const History least = Shrink(std::move(history));
    std::ostringstream text;
    text << least;
    FAIL() << "seed " << seed << ", shrunk: " << text.str() << "\n\n"
           << Tell(least) << "\nAgain: PROPERTY_SEED=" << seed << " PROPERTY_SEEDS=1 property_test";
  }
}

}  // namespace
}  // namespace model
