#include "mnist/idx.h"

#include <gmock/gmock.h>

#include "synthetic_data.h"

namespace mnist {
namespace {

using ::testing::HasSubstr;
using namespace trainer_test;

std::string ErrorOf(const TemporaryDirectory& directory, const std::string& content) {
  WriteFile(directory / "file", content);
  auto read = ReadIdx(directory / "file");
  return read ? "no error" : read.error().message;
}

TEST(Idx, ReadsRawAndGzipped) {
  TemporaryDirectory directory;
  WriteFile(directory / "raw", IdxHeader({2, 3}) + "abcdef");
  WriteGz(directory / "packed.gz", IdxHeader({2, 3}) + "abcdef");
  for (const char* name : {"raw", "packed.gz"}) {
    auto read = ReadIdx(directory / name);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read->dims, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(std::string(read->data.begin(), read->data.end()), "abcdef");
  }
}

TEST(Idx, SaysWhatIsWrong) {
  TemporaryDirectory directory;
  EXPECT_THAT(ErrorOf(directory, ""), HasSubstr("is cut off: 0 bytes"));
  EXPECT_THAT(ErrorOf(directory, "<html>not found</html>"),
              HasSubstr("is no IDX file: it begins with 0x3c68746d"));
  EXPECT_THAT(ErrorOf(directory, std::string("\0\0\x0d\x01", 4) + BigEndian(1) + "1234"),
              HasSubstr("numbers of IDX type 13"));
  EXPECT_THAT(ErrorOf(directory, IdxHeader({2, 3}).substr(0, 7)), HasSubstr("within its header"));
  EXPECT_THAT(ErrorOf(directory, IdxHeader({2, 3}) + "abcde"),
              HasSubstr("is cut off: 5 bytes of data where its header says 6"));
  EXPECT_THAT(ErrorOf(directory, IdxHeader({2, 3}) + "abcdefg"),
              HasSubstr("is too long: 7 bytes of data where its header says 6"));
  EXPECT_THAT(ErrorOf(directory, IdxHeader({0xffffffff, 0xffffffff, 0xffffffff}) + "a"),
              HasSubstr("more elements than can exist"));
}

TEST(Idx, NamesTheFile) {
  TemporaryDirectory directory;
  EXPECT_THAT(ErrorOf(directory, "x"), HasSubstr((directory / "file").string()));
  auto absent = ReadIdx(directory / "absent");
  ASSERT_FALSE(absent.ok());
  EXPECT_THAT(absent.error().message, HasSubstr("absent: No such file or directory"));
}

TEST(Idx, FindsADamagedOrTruncatedGzip) {
  TemporaryDirectory directory;
  WriteGz(directory / "good.gz", Images(20, 1));
  auto packed = ReadFile(directory / "good.gz");

  auto truncated = packed.substr(0, packed.size() / 2);
  EXPECT_THAT(ErrorOf(directory, truncated), HasSubstr("is cut off"));

  auto damaged = packed;
  for (size_t i = packed.size() / 2; i < packed.size() / 2 + 40; ++i) damaged[i] ^= 0x55;
  EXPECT_THAT(ErrorOf(directory, damaged), HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace mnist
