#include "kube/line_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace kube {
namespace {

using testing::ElementsAre;

std::vector<std::string> Split(const std::vector<std::string>& blocks, size_t max_line = 100) {
  LineSplitter splitter(max_line);
  std::vector<std::string> lines;
  for (const auto& block : blocks) {
    if (!splitter.Feed(block, [&lines](std::string_view line) {
          lines.emplace_back(line);
          return true;
        })) {
      lines.emplace_back("TOO LONG");
      break;
    }
  }
  return lines;
}

TEST(LineSplitter, SeveralInABlock) {
  EXPECT_THAT(Split({"a\nbc\nd\n"}), ElementsAre("a", "bc", "d"));
}

TEST(LineSplitter, OneOverSeveralBlocks) {
  EXPECT_THAT(Split({"a", "b", "", "c\nd", "\n"}), ElementsAre("abc", "d"));
}

TEST(LineSplitter, CutAtEveryPlaceGivesTheSameLines) {
  const std::string text = "{\"a\": 1}\n\r\n{\"b\":\"x\"}\r\n";
  for (size_t i = 0; i <= text.size(); ++i) {
    for (size_t j = i; j <= text.size(); ++j) {
      EXPECT_THAT(Split({text.substr(0, i), text.substr(i, j - i), text.substr(j)}),
                  ElementsAre("{\"a\": 1}", "{\"b\":\"x\"}"))
          << i << " " << j;
    }
  }
}

TEST(LineSplitter, WithoutAnEndNothingIsALine) { EXPECT_THAT(Split({"abc"}), ElementsAre()); }

TEST(LineSplitter, TooLongInOneBlockOrInSeveral) {
  EXPECT_THAT(Split({"12345\n"}, 5), ElementsAre("12345"));
  EXPECT_THAT(Split({"123456\n"}, 5), ElementsAre("TOO LONG"));
  EXPECT_THAT(Split({"a\n123", "45", "6"}, 5), ElementsAre("a", "TOO LONG"));
}

TEST(LineSplitter, StopsWhenToldTo) {
  LineSplitter splitter(100);
  int lines = 0;
  EXPECT_TRUE(splitter.Feed("a\nb\nc\n", [&lines](std::string_view) { return ++lines < 2; }));
  EXPECT_EQ(lines, 2);
}

TEST(LineSplitter, AHugeLineComesWhole) {
  const std::string huge(5 << 20, 'x');
  std::vector<std::string> blocks;
  for (size_t at = 0; at < huge.size(); at += 32768) blocks.push_back(huge.substr(at, 32768));
  blocks.push_back("\nnext\n");
  EXPECT_THAT(Split(blocks, 64 << 20), ElementsAre(huge, "next"));
}

}  // namespace
}  // namespace kube
