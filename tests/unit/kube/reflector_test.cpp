#include "kube/reflector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "kube/recording_transport.h"

namespace kube {
namespace {

using base::ErrorCode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Writes down what it is told, and asks for the end when it has been told `enough` things.
class RecordingSink : public Sink {
 public:
  RecordingSink(size_t enough, std::stop_source& stop) : enough_(enough), stop_(stop) {}
  std::vector<std::string> log;

  void Replace(const std::vector<std::string_view>& objects,
               const std::string& resource_version) override {
    std::string line = "replace@" + resource_version;
    for (const auto object : objects) line.append(" ").append(object);
    Note(line);
  }
  void Apply(EventType type, std::string_view object) override {
    Note("apply" + std::to_string(static_cast<int>(type)) + " " + std::string(object));
  }
  void Progress(const std::string& resource_version) override {
    Note("progress@" + resource_version);
  }
  void Trouble(const std::string& why) override { Note(why.empty() ? "back" : "lost: " + why); }

 private:
  void Note(std::string line) {
    log.push_back(std::move(line));
    if (log.size() >= enough_) stop_.request_stop();
  }
  const size_t enough_;
  std::stop_source& stop_;
};

std::string List(const std::string& version, const std::string& items,
                 const std::string& token = "") {
  return R"({"kind":"PodList","metadata":{"resourceVersion":")" + version + R"(","continue":")" +
         token + R"("},"items":[)" + items + "]}";
}
std::string Object(const std::string& name, const std::string& version) {
  return R"({"n":")" + name + R"(","metadata":{"resourceVersion":")" + version + R"("}})";
}
std::string Frame(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}\n";
}

struct Outcome {
  std::vector<std::string> log;
  std::vector<std::string> paths;
};

Outcome Follow(RecordingTransport& transport, size_t enough) {
  Client client(transport, {.retries = 0});
  std::stop_source stop;
  RecordingSink sink(enough, stop);
  RunReflector(client, {{"", "v1", "pods"}, "ns", ""}, sink, stop.get_token());
  Outcome outcome{sink.log, {}};
  for (const auto& request : transport.requests()) outcome.paths.push_back(request.path);
  return outcome;
}

TEST(Reflector, GathersPagesAndWatchesFromTheirVersion) {
  RecordingTransport transport;
  transport.Answer(200, List("7", R"({"a":1},{"b":2})", "t1"));
  transport.Answer(200, List("7", R"({"c":3})"));
  transport.AnswerWatch({.blocks = {Frame("ADDED", Object("d", "8"))}, .until_stop = true});
  const auto outcome = Follow(transport, 3);
  EXPECT_THAT(outcome.log, ElementsAre(R"(replace@7 {"a":1} {"b":2} {"c":3})",
                                       "apply0 " + Object("d", "8"), "progress@8"));
  ASSERT_EQ(outcome.paths.size(), 3u);
  EXPECT_THAT(outcome.paths[1], HasSubstr("continue=t1"));
  EXPECT_THAT(outcome.paths[2], HasSubstr("resourceVersion=7&"));
}

TEST(Reflector, ManySmallPagesKeepTheirObjects) {
  // Short texts live inside of their std::string: moving one would move what its items point to.
  RecordingTransport transport;
  std::string expected = "replace@1";
  for (int i = 0; i < 50; ++i) {
    const std::string item = std::to_string(i);
    transport.Answer(200, R"({"metadata":{"resourceVersion":"1","continue":")" +
                              std::string(i < 49 ? "t" : "") + R"("},"items":[)" + item + "]}");
    expected += " " + item;
  }
  EXPECT_THAT(Follow(transport, 1).log, ElementsAre(expected));
}

TEST(Reflector, LinesMayBeSplitAnywhere) {
  RecordingTransport transport;
  transport.Answer(200, List("7", ""));
  const std::string frames = Frame("ADDED", Object("}{\\\"", "8")) +
                             Frame("MODIFIED", Object("b", "9")) +
                             Frame("BOOKMARK", Object("", "12"));
  RecordingTransport::Watch watch{.until_stop = true};
  for (const char c : frames) watch.blocks.emplace_back(1, c);
  transport.AnswerWatch(watch);
  EXPECT_THAT(Follow(transport, 6).log,
              ElementsAre("replace@7", "apply0 " + Object("}{\\\"", "8"), "progress@8",
                          "apply1 " + Object("b", "9"), "progress@9", "progress@12"));
}

TEST(Reflector, ResumesFromTheLastVersion) {
  RecordingTransport transport;
  transport.Answer(200, List("7", ""));
  transport.AnswerWatch({.blocks = {Frame("BOOKMARK", Object("", "20"))}});
  transport.AnswerWatch({.blocks = {Frame("DELETED", Object("a", "21"))},
                         .result = base::Error{ErrorCode::kUnavailable, "reset", {}}});
  transport.AnswerWatch({.blocks = {Frame("ADDED", Object("b", "22"))}, .until_stop = true});
  const auto outcome = Follow(transport, 8);
  ASSERT_EQ(outcome.paths.size(), 4u);
  EXPECT_THAT(outcome.paths[2], HasSubstr("resourceVersion=20&"));
  EXPECT_THAT(outcome.paths[3], HasSubstr("resourceVersion=21&"));
  EXPECT_THAT(outcome.log,
              ElementsAre("replace@7", "progress@20", "apply2 " + Object("a", "21"), "progress@21",
                          HasSubstr("lost"), "back", "apply0 " + Object("b", "22"), "progress@22"));
}

TEST(Reflector, ListsAgainAfter410InEitherForm) {
  for (const bool inside : {true, false}) {
    RecordingTransport transport;
    transport.Answer(200, List("7", ""));
    if (inside) {
      transport.AnswerWatch(
          {.blocks = {Frame("ERROR", R"({"kind":"Status","code":410,"reason":"Expired"})") +
                      Frame("ADDED", Object("late", "8"))}});
    } else {
      transport.AnswerWatch({.result = HttpResponse{410, {}, "{}"}});
    }
    transport.Answer(200, List("30", ""));
    EXPECT_THAT(Follow(transport, 2).log, ElementsAre("replace@7", "replace@30")) << inside;
  }
}

TEST(Reflector, GarbageIsFollowedByAListNotByMoreOfTheStream) {
  for (const std::string garbage : {"garbage\n", "{\"type\":\"ADDED\",\"object\":{\"a\":\n"}) {
    RecordingTransport transport;
    transport.Answer(200, List("7", ""));
    transport.AnswerWatch({.blocks = {garbage + Frame("ADDED", Object("late", "8"))}});
    transport.Answer(200, List("9", ""));
    EXPECT_THAT(Follow(transport, 4).log,
                ElementsAre("replace@7", HasSubstr("no event"), "replace@9", "back"));
  }
}

TEST(Reflector, A5MegabyteObjectComesThrough) {
  RecordingTransport transport;
  const std::string huge = Object(std::string(5 << 20, 'x'), "8");
  transport.Answer(200, List("7", ""));
  RecordingTransport::Watch watch{.until_stop = true};
  const std::string line = Frame("ADDED", huge);
  for (size_t at = 0; at < line.size(); at += 16000) watch.blocks.push_back(line.substr(at, 16000));
  transport.AnswerWatch(watch);
  EXPECT_THAT(Follow(transport, 3).log, ElementsAre("replace@7", "apply0 " + huge, "progress@8"));
}

TEST(Reflector, ALineWithoutEndIsGivenUp) {
  RecordingTransport transport;
  transport.Answer(200, List("7", ""));
  RecordingTransport::Watch watch;
  for (int i = 0; i < 70; ++i) watch.blocks.emplace_back(1 << 20, 'x');
  transport.AnswerWatch(watch);
  transport.Answer(200, List("9", ""));
  EXPECT_THAT(Follow(transport, 4).log,
              ElementsAre("replace@7", HasSubstr("MiB"), "replace@9", "back"));
}

TEST(Reflector, AListThatIsNoneIsAskedForAgain) {
  RecordingTransport transport;
  transport.Answer(200, "<html>login</html>");
  transport.Answer(200, List("7", ""));
  EXPECT_THAT(Follow(transport, 3).log, ElementsAre(HasSubstr("<html>"), "replace@7", "back"));
}

TEST(Reflector, APageThatExpiresDropsThoseBefore) {
  RecordingTransport transport;
  transport.Answer(200, List("7", R"({"old":1})", "t"));
  transport.Answer(410, "{}");
  transport.Answer(200, List("8", R"({"new":1})", "t"));
  transport.Answer(410, "{}");
  transport.Answer(200, List("9", R"({"newer":1})"));
  const auto outcome = Follow(transport, 1);
  EXPECT_THAT(outcome.log, ElementsAre(R"(replace@9 {"newer":1})"));
  ASSERT_EQ(outcome.paths.size(), 5u);
  EXPECT_THAT(outcome.paths[2], HasSubstr("limit=500"));
  EXPECT_THAT(outcome.paths[4], Not(HasSubstr("limit="))) << "in one piece, which can't expire";
}

TEST(Reflector, StopsWhileItWaitsAndWhileItWatches) {
  for (const bool watching : {false, true}) {
    RecordingTransport transport;
    if (watching) {
      transport.Answer(200, List("7", ""));
      transport.AnswerWatch({.until_stop = true});
    }
    Client client(transport, {.retries = 0});
    std::stop_source stop;
    RecordingSink sink(1000, stop);
    std::jthread reflector([&] {
      RunReflector(client, {{"", "v1", "pods"}, "", ""}, sink, stop.get_token());
    });
    const size_t begun = watching ? 2 : 3;
    while (transport.requests().size() < begun) std::this_thread::yield();
    stop.request_stop();  // if it did not end, the join would not return
  }
}

}  // namespace
}  // namespace kube
