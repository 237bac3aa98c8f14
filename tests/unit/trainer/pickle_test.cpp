#include "pickle.h"

#include <gmock/gmock.h>

namespace ddp {
namespace {

using ::testing::HasSubstr;
using Kind = PickleValue::Kind;

std::string P(const std::string& body) { return std::string("\x80\x02", 2) + body; }

TEST(Pickle, ReadsWhatTheWriterWrites) {
  PickleWriter writer;
  const int64_t numbers[] = {0, 255, 256, -1, 2147483648, -9000000000};
  writer.IntTuple(numbers, 6);
  auto value = ParsePickle(writer.Finish());
  ASSERT_TRUE(value.ok()) << value.error().message;
  ASSERT_EQ((*value)->kind, Kind::kTuple);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ((*value)->items[i]->number, numbers[i]);
}

TEST(Pickle, ReadsDictsGlobalsAndTheMemo) {
  // {"a": 1, "b": "x", "c": the same "x" again}, then a call with a persistent id.
  auto dict = ParsePickle(P("}(X\x01" + std::string(3, '\0') + "aK\x01X\x01" +
                            std::string(3, '\0') + "bX\x01" + std::string(3, '\0') + "xq\x05X\x01" +
                            std::string(3, '\0') + "ch\x05u."));
  ASSERT_TRUE(dict.ok()) << dict.error().message;
  ASSERT_EQ((*dict)->items.size(), 6u);
  EXPECT_EQ((*dict)->items[5]->text, "x");

  auto call = ParsePickle(P("ctorch\nthing\n(U\x02idQt\x52."));
  ASSERT_TRUE(call.ok()) << call.error().message;
  EXPECT_EQ((*call)->kind, Kind::kCall);
  EXPECT_EQ((*call)->items[0]->text, "torch.thing");
  EXPECT_EQ((*call)->items[1]->items[0]->kind, Kind::kPersistent);
}

TEST(Pickle, NeverCallsAnything) {
  auto value =
      ParsePickle(P("cos\nsystem\n(U\x04"
                    "true"
                    "tR."));
  ASSERT_TRUE(value.ok());
  EXPECT_EQ((*value)->items[0]->text, "os.system");
}

TEST(Pickle, EveryBrokenStreamIsAnError) {
  PickleWriter writer;
  writer.Global("collections", "OrderedDict");
  writer.Raw(")R(");
  writer.String("name");
  writer.Int(7);
  writer.Raw("u");
  const auto good = writer.Finish();
  ASSERT_TRUE(ParsePickle(good).ok());
  for (size_t size = 0; size < good.size(); ++size) {
    auto cut = ParsePickle(std::string_view(good).substr(0, size));
    ASSERT_FALSE(cut.ok()) << size;
    EXPECT_EQ(cut.error().kind, ErrorKind::kDamaged);
  }
  for (const char* body : {"0.", "t.", "R.", "a.", "s.", "h\x07.", "K", "u.", "\x93.", "\xff."}) {
    EXPECT_FALSE(ParsePickle(P(body)).ok()) << body;
  }
  // Any byte changed: an error or another value, but never a crash.
  for (size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      auto changed = good;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      auto parsed = ParsePickle(changed);
      if (!parsed) EXPECT_THAT(parsed.error().message, HasSubstr("data.pkl is damaged"));
    }
  }
}

}  // namespace
}  // namespace ddp
