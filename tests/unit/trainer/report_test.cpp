#include "mnist/report.h"

#include <gtest/gtest.h>

#include <regex>

namespace mnist {
namespace {

// 2024-06-21T04:55:09Z
constexpr auto kNow = std::chrono::system_clock::time_point(std::chrono::seconds(1718945709));

std::string Print(LineStyle style, LogFormat format) {
  std::string out;
  Report report(
      style, format, [&](const std::string& lines) { out += lines; }, [] { return kNow; });
  report.UsingCuda();
  report.PreferNccl();
  report.UsingBackend("gloo");
  report.WorldSize(2, 0);
  report.BucketsRebuilt();
  report.Train({.epoch = 1,
                .batch = 256,
                .batches = 313,
                .samples_seen = 640,
                .dataset_size = 60000,
                .loss = 0.04400685429573059f});
  report.Test({.epoch = 1, .correct = 9814, .total = 10000, .loss = 0.05678});
  return out;
}

TEST(Report, DigitsPlain) {
  EXPECT_EQ(Print(LineStyle::kDigits, LogFormat::kPlain),
            "Using CUDA\n"
            "Warning. Please use `nccl` distributed backend for the best performance using GPUs\n"
            "Using distributed PyTorch with gloo backend\n"
            "World Size: 2. Rank: 0\n"
            "Reducer buckets have been rebuilt in this iteration.\n"
            "Epoch: 1 ( 81.8%) - Loss: 0.04400685429573059\n"
            "Test accuracy: 9814/10000 ( 98.1%)\n"
            "loss=0.0568\n"
            "accuracy=0.9814\n");
}

TEST(Report, FashionPlain) {
  std::string out;
  Report report(
      LineStyle::kFashion, LogFormat::kPlain, [&](const std::string& lines) { out += lines; },
      [] { return kNow; });
  report.Train({.epoch = 1,
                .batch = 10,
                .batches = 938,
                .samples_seen = 640,
                .dataset_size = 60000,
                .loss = 2.21349f});
  report.Test({.epoch = 1, .correct = 7313, .total = 10000, .loss = 0.66});
  EXPECT_EQ(out, "Train Epoch: 1 [640/60000 (1%)]\tloss=2.2135\n\naccuracy=0.7313\n\n");
}

TEST(Report, PythonLoggingPrefix) {
  std::string out;
  Report report(
      LineStyle::kDigits, LogFormat::kPython, [&](const std::string& lines) { out += lines; },
      [] { return kNow; });
  report.Test({.epoch = 1, .correct = 9814, .total = 10000, .loss = 0.05678});
  EXPECT_EQ(out,
            "INFO:root:Test accuracy: 9814/10000 ( 98.1%)\n"
            "INFO:root:loss=0.0568\n"
            "INFO:root:accuracy=0.9814\n");
}

TEST(Report, Rfc3339StampsEachLine) {
  std::string out;
  Report report(
      LineStyle::kFashion, LogFormat::kRfc3339, [&](const std::string& lines) { out += lines; },
      [] { return kNow; });
  report.Train({.epoch = 1,
                .batch = 0,
                .batches = 938,
                .samples_seen = 0,
                .dataset_size = 60000,
                .loss = 2.3f});
  report.Test({.epoch = 1, .correct = 7313, .total = 10000, .loss = 0.6649});
  EXPECT_EQ(out,
            "2024-06-21T04:55:09Z INFO     Train Epoch: 1 [0/60000 (0%)]\tloss=2.3000\n"
            "2024-06-21T04:55:09Z INFO     accuracy=0.7313\n");
}

TEST(Report, MetricName) {
  std::string out;
  Report report(
      LineStyle::kFashion, LogFormat::kMetricName, [&](const std::string& lines) { out += lines; },
      [] { return kNow; });
  report.Test({.epoch = 1, .correct = 7313, .total = 10000, .loss = 0.6649});
  EXPECT_EQ(out,
            "2024-06-21T04:55:09Z INFO     {metricName: accuracy, metricValue: 0.7313};"
            "{metricName: loss, metricValue: 0.6649}\n");
}

TEST(Report, JsonHasNothingButObjects) {
  EXPECT_EQ(Print(LineStyle::kDigits, LogFormat::kJson),
            "{\"loss\": \"0.0440\", \"epoch\": \"1\", \"batch\": \"256\", "
            "\"timestamp\": \"2024-06-21T04:55:09Z\"}\n"
            "{\"accuracy\": \"0.9814\", \"loss\": \"0.0568\", \"epoch\": \"1\", "
            "\"timestamp\": \"2024-06-21T04:55:09Z\"}\n");
}

// What Katib's collector does with text: lines that name a metric, and on them each match of its
// filter whose name is wanted. Without a filter given it takes the first of these; the second is
// the one for {metricName: ...} lines.
std::vector<std::string> KatibReads(const std::string& text, const std::string& filter,
                                    const std::string& metric) {
  std::vector<std::string> values;
  const std::regex pattern(filter);
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.find(metric) == std::string::npos) continue;
    for (std::sregex_iterator match(line.begin(), line.end(), pattern), end; match != end;
         ++match) {
      if ((*match)[1] == metric) values.push_back((*match)[2]);
    }
  }
  return values;
}

TEST(Report, KatibReadsEveryTextFormat) {
  const std::string pairs = R"(([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?))";
  const std::string names = R"(\{metricName: ([\w|-]+), metricValue: ((-?\d+)(\.\d+)?)\})";
  for (auto style : {LineStyle::kDigits, LineStyle::kFashion}) {
    for (auto format : {LogFormat::kPlain, LogFormat::kRfc3339, LogFormat::kPython}) {
      const auto text = Print(style, format);
      EXPECT_EQ(KatibReads(text, pairs, "accuracy"), std::vector<std::string>{"0.9814"}) << text;
      EXPECT_EQ(KatibReads(text, pairs, "loss"),
                std::vector<std::string>{style == LineStyle::kDigits ? "0.0568" : "0.0440"})
          << text;
    }
    const auto text = Print(style, LogFormat::kMetricName);
    EXPECT_EQ(KatibReads(text, names, "accuracy"), std::vector<std::string>{"0.9814"}) << text;
    EXPECT_EQ(KatibReads(text, names, "loss"), std::vector<std::string>{"0.0568"}) << text;
  }
}

}  // namespace
}  // namespace mnist
