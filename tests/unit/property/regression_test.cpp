// Histories that once broke a rule, as the property test shrank them.

#include <gtest/gtest.h>

#include "property/world.h"

namespace model {
namespace {

void Hold(const History& history) {
  auto violation = Run(history);
  EXPECT_FALSE(violation) << *violation << "\n" << history << "\n" << Tell(history);
}

// A failed pod that was counted, scaled away and back before it was deleted: counted twice.
TEST(Regression, CountsAFailedPodOnceThatIsScaledAwayAndBack) {
  Hold({{2, true, 0, 0, 0, 0, 0, false, false, false, true},
        {{Step::kFailOddly, 2},
         {Step::kCrashPass, 1},
         {Step::kScale, 1},
         {Step::kCrashPass, 1},
         {Step::kScale, 2},
         {Step::kSettle, 0}}});
}

}  // namespace
}  // namespace model
