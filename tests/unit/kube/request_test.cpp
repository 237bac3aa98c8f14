#include "kube/request.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace kube {
namespace {

using base::ErrorCode;
using nlohmann::json;

const Resource kPods{"", "v1", "pods"};
const Resource kJobs{"kubeflow.org", "v1", "pytorchjobs"};

TEST(Request, EncodesAllButUnreservedCharacters) {
  EXPECT_EQ(PercentEncode("aZ09-._~"), "aZ09-._~");
  EXPECT_EQ(PercentEncode("a/b c=d,e&f%"), "a%2Fb%20c%3Dd%2Ce%26f%25");
  EXPECT_EQ(PercentEncode("ü\n"), "%C3%BC%0A");
}

TEST(Request, BuildsPaths) {
  EXPECT_EQ(ResourcePath(kPods, "", "", ""), "/api/v1/pods");
  EXPECT_EQ(ResourcePath(kPods, "ns", "", ""), "/api/v1/namespaces/ns/pods");
  EXPECT_EQ(ResourcePath(kJobs, "ns", "a", "status"),
            "/apis/kubeflow.org/v1/namespaces/ns/pytorchjobs/a/status");
  EXPECT_EQ(ResourcePath(kJobs, "../x", "a?b", ""),
            "/apis/kubeflow.org/v1/namespaces/..%2Fx/pytorchjobs/a%3Fb");
  EXPECT_EQ(ResourcePath({"", "v1", "nodes"}, "", "n", ""), "/api/v1/nodes/n");
}

TEST(Request, ListsPageByPage) {
  EXPECT_EQ(ListRequest(kPods, "", {}).path, "/api/v1/pods?limit=500");
  EXPECT_EQ(ListRequest(kPods, "", {.label_selector = "a=b,c"}).path,
            "/api/v1/pods?labelSelector=a%3Db%2Cc&limit=500");
  EXPECT_EQ(ListRequest(kPods, "", {.limit = 0, .resource_version = "0"}).path,
            "/api/v1/pods?resourceVersion=0");
  // A continued list names no version of its own.
  EXPECT_EQ(
      ListRequest(kPods, "", {.limit = 2, .continue_token = "t=", .resource_version = "0"}).path,
      "/api/v1/pods?limit=2&continue=t%3D");
}

TEST(Request, WatchesWithBookmarksAndWaitsLongerThanTheServer) {
  const auto request = WatchRequest(
      kPods, "ns", {.resource_version = "7", .server_timeout = std::chrono::seconds(300)});
  EXPECT_EQ(request.path,
            "/api/v1/namespaces/ns/pods?watch=true&allowWatchBookmarks=true&resourceVersion=7"
            "&timeoutSeconds=300");
  EXPECT_GT(request.timeout, std::chrono::seconds(300));
}

TEST(Request, PatchesWithTheMergePatchContentType) {
  const auto request = MergePatchRequest(kJobs, "ns", "a", "status", "{}");
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.content_type, "application/merge-patch+json");
}

TEST(Request, DeletesWithPreconditions) {
  const auto plain = json::parse(DeleteRequest(kPods, "ns", "a", {}).body);
  EXPECT_FALSE(plain.contains("preconditions"));
  EXPECT_FALSE(plain.contains("gracePeriodSeconds"));
  EXPECT_EQ(plain["propagationPolicy"], "Background");
  const auto exact = json::parse(DeleteRequest(kPods, "ns", "a", {"u-1", 0}).body);
  EXPECT_EQ(exact["preconditions"]["uid"], "u-1");
  EXPECT_EQ(exact["gracePeriodSeconds"], 0);
}

std::string Status(const std::string& reason, const std::string& message = "m") {
  return json{{"kind", "Status"}, {"reason", reason}, {"message", message}}.dump();
}

TEST(Request, MapsStatusToError) {
  struct Row {
    int status;
    std::string body;
    ErrorCode code;
  };
  for (const auto& row : {
           Row{400, Status("BadRequest"), ErrorCode::kInvalidArgument},
           Row{401, Status("Unauthorized"), ErrorCode::kUnauthorized},
           Row{403, Status("Forbidden"), ErrorCode::kForbidden},
           Row{404, Status("NotFound"), ErrorCode::kNotFound},
           Row{409, Status("AlreadyExists"), ErrorCode::kAlreadyExists},
           Row{409, Status("Conflict"), ErrorCode::kConflict},
           Row{409, "", ErrorCode::kConflict},
           Row{410, Status("Expired"), ErrorCode::kGone},
           Row{410, Status("Gone"), ErrorCode::kGone},
           Row{422, Status("Invalid"), ErrorCode::kInvalid},
           Row{429, Status("TooManyRequests"), ErrorCode::kTooManyRequests},
           Row{500, Status("InternalError"), ErrorCode::kUnavailable},
           Row{503, "", ErrorCode::kUnavailable},
           Row{504, Status("Timeout"), ErrorCode::kTimeout},
           Row{302, "", ErrorCode::kInternal},
       }) {
    EXPECT_EQ(ErrorOf({}, {row.status, {}, row.body}).code, row.code) << row.status << row.body;
  }
}

TEST(Request, ErrorCarriesTheServersWords) {
  EXPECT_EQ(ErrorOf({}, {422, {}, Status("Invalid", "spec.x: Required value")}).message,
            "spec.x: Required value");
}

TEST(Request, ForeignBodiesAreShownShortAndOnOneLine) {
  const auto error = ErrorOf({.method = "GET", .path = "/api?x=secret"},
                             {502, {}, "<html>\n" + std::string(5000, 'x')});
  EXPECT_LT(error.message.size(), 400u);
  EXPECT_EQ(error.message.find('\n'), std::string::npos);
  EXPECT_NE(error.message.find("GET /api: HTTP status 502: <html> xxx"), std::string::npos)
      << error.message;
  EXPECT_EQ(error.message.find("secret"), std::string::npos);
}

TEST(Request, CutsForeignTextBetweenCharacters) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "ü";
  for (int shift = 0; shift < 2; ++shift) {
    const auto message = ErrorOf({}, {502, {}, std::string(shift, 'x') + text}).message;
    EXPECT_NO_THROW(static_cast<void>(json(message).dump())) << "not UTF-8";
  }
}

TEST(Request, ReadsRetryAfterFromHeaderAndStatus) {
  const auto after = [](std::map<std::string, std::string> headers, const std::string& body) {
    return ErrorOf({}, {429, std::move(headers), body}).retry_after.count();
  };
  EXPECT_EQ(after({{"retry-after", "3"}}, ""), 3000);
  EXPECT_EQ(after({}, R"({"kind":"Status","details":{"retryAfterSeconds":2}})"), 2000);
  EXPECT_EQ(after({}, ""), 0);
  EXPECT_EQ(after({{"retry-after", "soon"}}, ""), 0);
  EXPECT_EQ(after({{"retry-after", "9999999"}}, ""), 600000) << "not for ever";
  EXPECT_EQ(after({{"retry-after", "99999999999999999999"}}, ""), 0);
  EXPECT_EQ(after({}, R"({"kind":"Status","details":{"retryAfterSeconds":-5}})"), 0);
}

TEST(Request, SurvivesStatusOfWrongTypes) {
  for (const char* body : {R"({"kind":1})", R"({"kind":"Status","message":5,"reason":[]})",
                           R"({"kind":"Status","details":"x"})", "[]", "null", "\xff"}) {
    EXPECT_EQ(ErrorOf({}, {404, {}, body}).code, ErrorCode::kNotFound) << body;
  }
}

}  // namespace
}  // namespace kube
