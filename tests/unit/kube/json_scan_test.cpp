#include "kube/json_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kube {
namespace {

using testing::ElementsAre;

TEST(WatchFrame, FindsTypeObjectAndVersion) {
  const auto frame = ScanWatchFrame(
      R"({"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"a","resourceVersion":"17"}}})");
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->type, "ADDED");
  EXPECT_EQ(frame->object, R"({"kind":"Pod","metadata":{"name":"a","resourceVersion":"17"}})");
  EXPECT_EQ(frame->resource_version, "17");
}

TEST(WatchFrame, OrderAndBlanksDoNotMatter) {
  const auto frame = ScanWatchFrame(
      " { \"object\" : { \"metadata\" : { \"resourceVersion\" : \"9\" } } , \"type\" : \"DELETED\" "
      "} ");
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->type, "DELETED");
  EXPECT_EQ(frame->resource_version, "9");
}

TEST(WatchFrame, BracketsAndQuotesInStringsAreText) {
  const std::string object =
      R"({"a":"}]{[\"\\","metadata":{"annotations":{"x":"\\\"}}"},"resourceVersion":"5"}})";
  const auto frame = ScanWatchFrame(R"({"type":"MODIFIED","object":)" + object + "}");
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->object, object);
  EXPECT_EQ(frame->resource_version, "5");
}

TEST(WatchFrame, OnlyTheObjectsOwnVersionCounts) {
  const auto frame = ScanWatchFrame(
      R"({"type":"ADDED","object":{"spec":{"metadata":{"resourceVersion":"1"}},)"
      R"("metadata":{"ownerReferences":[{"resourceVersion":"2"}],"labels":{"resourceVersion":"3"}}}})");
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->resource_version, "");
}

TEST(WatchFrame, EscapesInAVersionAreResolved) {
  const auto frame =
      ScanWatchFrame(R"({"type":"ADDED","object":{"metadata":{"resourceVersion":"\u0031\/2"}}})");
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->resource_version, "1/2");
}

TEST(WatchFrame, VersionOfAWrongTypeIsNone) {
  for (const char* version : {"17", "null", "{}", "[\"1\"]", "true"}) {
    const auto frame =
        ScanWatchFrame(std::string(R"({"type":"ADDED","object":{"metadata":{"resourceVersion":)") +
                       version + "}}}");
    ASSERT_TRUE(frame) << version;
    EXPECT_EQ(frame->resource_version, "") << version;
  }
}

TEST(WatchFrame, WhatIsNoFrameIsRefused) {
  for (const char* line : {"",
                           " ",
                           "garbage",
                           "null",
                           "[]",
                           "{}",
                           "\"type\"",
                           R"({"type":"ADDED"})",
                           R"({"object":{}})",
                           R"({"type":"","object":{}})",
                           R"({"type":1,"object":{}})",
                           R"({"type":"ADDED","object":[]})",
                           R"({"type":"ADDED","object":null})",
                           R"({"type":"ADDED","object":{}}x)",
                           R"({"type":"ADDED","object":{}} {})",
                           R"({"type":"ADDED","object":{"a":1})",
                           R"({"type":"ADDED","object":{"a":[}]}})",
                           R"({"type":"ADDED","object":{"a":"x}})",
                           R"({"type":"ADDED","object":{"a":"\)",
                           R"({"type":"ADDED" "object":{}})",
                           R"({type:"ADDED","object":{}})",
                           R"({"type":"ADDED","object":{"a"}})",
                           R"({"type":"ADDED","object":{},})"}) {
    EXPECT_FALSE(ScanWatchFrame(line)) << line;
  }
}

TEST(WatchFrame, EveryPrefixOfAFrameIsRefused) {
  const std::string line =
      R"({"type":"ADDED","object":{"a":["\"",{"b":-1.5e3}],"metadata":{"resourceVersion":"1"}}})";
  ASSERT_TRUE(ScanWatchFrame(line));
  for (size_t size = 0; size < line.size(); ++size) {
    EXPECT_FALSE(ScanWatchFrame(line.substr(0, size))) << size;
  }
}

TEST(WatchFrame, DepthDoesNotUseTheStack) {
  const std::string deep(5 << 20, '[');
  EXPECT_FALSE(ScanWatchFrame(R"({"type":"ADDED","object":{"a":)" + deep));
  const std::string closed(5 << 20, ']');
  EXPECT_TRUE(ScanWatchFrame(R"({"type":"ADDED","object":{"a":)" + deep + closed + "}}"));
}

TEST(StatusText, FindsCodeAndMessage) {
  const auto status = ScanStatus(R"({"kind":"Status","message":"too \"old\"","code":410})");
  EXPECT_EQ(status.code, 410);
  EXPECT_EQ(status.message, "too \"old\"");
  EXPECT_EQ(ScanStatus(R"({"code":"x"})").code, 0);
}

TEST(List, FindsItemsVersionAndContinuation) {
  const auto page =
      ScanList(R"({"kind":"PodList","metadata":{"resourceVersion":"7","continue":"t=="},)"
               R"("items":[{"a":"]"}, {"b":[1,2]} ,{}]})");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->resource_version, "7");
  EXPECT_EQ(page->continue_token, "t==");
  EXPECT_THAT(page->items, ElementsAre(R"({"a":"]"})", R"({"b":[1,2]})", "{}"));
}

TEST(List, MayBeEmpty) {
  for (const char* items : {"[]", "[ ]", "null"}) {
    const auto page =
        ScanList(std::string(R"({"metadata":{"resourceVersion":"7"},"items":)") + items + "}");
    ASSERT_TRUE(page) << items;
    EXPECT_TRUE(page->items.empty());
  }
}

TEST(List, WithoutAVersionOrTornItIsNone) {
  const std::string list = R"({"items":[{"a":1},{"b":2}],"metadata":{"resourceVersion":"7"}})";
  ASSERT_TRUE(ScanList(list));
  for (size_t size = 0; size < list.size(); ++size) {
    EXPECT_FALSE(ScanList(list.substr(0, size))) << size;
  }
  EXPECT_FALSE(ScanList(R"({"items":[],"metadata":{}})"));
  EXPECT_FALSE(ScanList("<html>"));
}

}  // namespace
}  // namespace kube
