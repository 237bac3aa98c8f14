#include "kube/base64.h"

#include <gtest/gtest.h>

namespace kube {
namespace {

TEST(Base64, DecodesEveryRemainder) {
  EXPECT_EQ(DecodeBase64(""), "");
  EXPECT_EQ(DecodeBase64("YQ=="), "a");
  EXPECT_EQ(DecodeBase64("YWI="), "ab");
  EXPECT_EQ(DecodeBase64("YWJj"), "abc");
  EXPECT_EQ(DecodeBase64("+/8A"), std::string("\xfb\xff\x00", 3));
}

TEST(Base64, SkipsLineBreaks) { EXPECT_EQ(DecodeBase64("YW\nJj\r\n \t"), "abc"); }

TEST(Base64, RefusesWhatIsNotBase64) {
  for (const char* text : {"Y", "YQ", "YQ=", "YWJ", "Y=Q=", "YQ==YQ==", "YW-_", "====", "Y==="}) {
    EXPECT_FALSE(DecodeBase64(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace kube
