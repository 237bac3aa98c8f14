#include "mnist/report.h"

#include <ctime>

#include "mnist/python_format.h"

namespace mnist {
namespace {

std::string JsonPair(const std::string& name, const std::string& value) {
  return "\"" + name + "\": \"" + value + "\"";
}

}  // namespace

std::string Rfc3339(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char buffer[32];
  std::strftime(buffer, sizeof(buffer), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return buffer;
}

Report::Report(LineStyle style, LogFormat format, Sink sink, Now now)
    : style_(style), format_(format), sink_(std::move(sink)), now_(std::move(now)) {}

std::string Report::Timestamp() const { return Rfc3339(now_()); }

void Report::Emit(const std::string& line) {
  switch (format_) {
    case LogFormat::kPlain:
    case LogFormat::kJson:
      sink_(line + "\n");
      break;
    case LogFormat::kPython:
      sink_("INFO:root:" + line + "\n");
      break;
    case LogFormat::kRfc3339:
    case LogFormat::kMetricName:
      sink_(Timestamp() + " INFO     " + line + "\n");
      break;
  }
}

void Report::Text(const std::string& line) {
  // Katib's JSON reader fails on any line that is no object.
  if (format_ != LogFormat::kJson) Emit(line);
}

void Report::UsingCuda() { Text("Using CUDA"); }

void Report::PreferNccl() {
  Text("Warning. Please use `nccl` distributed backend for the best performance using GPUs");
}

void Report::UsingBackend(const std::string& backend) {
  Text("Using distributed PyTorch with " + backend + " backend");
}

void Report::WorldSize(int world_size, int rank) {
  Text("World Size: " + std::to_string(world_size) + ". Rank: " + std::to_string(rank));
}

void Report::BucketsRebuilt() { Text("Reducer buckets have been rebuilt in this iteration."); }

void Report::Train(const TrainLine& line) {
  if (format_ == LogFormat::kJson) {
    Emit("{" + JsonPair("loss", Fixed(line.loss, 4)) + ", " +
         JsonPair("epoch", std::to_string(line.epoch)) + ", " +
         JsonPair("batch", std::to_string(line.batch)) + ", " + JsonPair("timestamp", Timestamp()) +
         "}");
  } else if (style_ == LineStyle::kDigits) {
    Emit("Epoch: " + std::to_string(line.epoch) + " (" + Percent(line.batch, line.batches) +
         ") - Loss: " + PythonRepr(line.loss));
  } else {
    Emit("Train Epoch: " + std::to_string(line.epoch) + " [" + std::to_string(line.samples_seen) +
         "/" + std::to_string(line.dataset_size) + " (" + WholePercent(line.batch, line.batches) +
         ")]\tloss=" + Fixed(line.loss, 4));
  }
}

void Report::Test(const TestLine& line) {
  const auto accuracy =
      Fixed(static_cast<double>(line.correct) / static_cast<double>(line.total), 4);
  const auto loss = Fixed(line.loss, 4);
  if (format_ == LogFormat::kJson) {
    Emit("{" + JsonPair("accuracy", accuracy) + ", " + JsonPair("loss", loss) + ", " +
         JsonPair("epoch", std::to_string(line.epoch)) + ", " + JsonPair("timestamp", Timestamp()) +
         "}");
    return;
  }
  if (format_ == LogFormat::kMetricName) {
    Emit("{metricName: accuracy, metricValue: " + accuracy +
         "};{metricName: loss, metricValue: " + loss + "}");
    return;
  }
  if (style_ == LineStyle::kDigits) {
    Emit("Test accuracy: " + std::to_string(line.correct) + "/" + std::to_string(line.total) +
         " (" + Percent(line.correct, line.total) + ")");
    Emit("loss=" + loss);
    Emit("accuracy=" + accuracy);
  } else if (format_ == LogFormat::kPlain) {
    sink_("\naccuracy=" + accuracy + "\n\n");
  } else {
    Emit("accuracy=" + accuracy);
  }
}

}  // namespace mnist
