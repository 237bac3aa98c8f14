// The kit is trusted by all other tests, so its own promises are held here.
#include "kit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace core::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Kit, ReadsYamlWithTheTypesOfKubectl) {
  EXPECT_EQ(FromYaml("{a: 1, b: \"1\", c: true, d: [x, null], e: 1.5, f: '', g: 10s}"),
            Json::parse(R"({"a":1,"b":"1","c":true,"d":["x",null],"e":1.5,"f":"","g":"10s"})"));
}

TEST(Kit, WholeLifeOfAJob) {
  Scene scene(MakeJob(true, 2));
  EXPECT_THAT(Lines(scene.Step()),
              ElementsAre("status", "create Service mnist-master-0", "create Pod mnist-master-0",
                          "create Pod mnist-worker-0", "create Pod mnist-worker-1"));
  EXPECT_EQ(scene.conditions(), "[Created=T]");
  scene.StartAll();
  scene.Step();
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=T]");
  scene.Advance(seconds{60});
  scene.Exit("mnist-master-0", 0);
  scene.Step();
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=F, Succeeded=T]");
  EXPECT_THAT(Lines(scene.Step()), IsEmpty());
}

}  // namespace
}  // namespace core::test
