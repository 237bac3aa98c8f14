#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace mnist {

// Whose lines are printed: those of the "digits" or of the "fashion" example.
enum class LineStyle { kDigits, kFashion };

enum class LogFormat {
  kPlain,       // the line
  kRfc3339,     // 2024-06-21T04:55:09Z INFO     the line
  kPython,      // INFO:root:the line
  kMetricName,  // as kRfc3339, test results as {metricName: ..., metricValue: ...} pairs
  kJson,        // one object a line, values as strings: Katib's JSON format
};

struct TrainLine {
  int64_t epoch = 1;
  int64_t batch = 0;         // from 0
  int64_t batches = 0;       // of this rank's epoch
  int64_t samples_seen = 0;  // batch * samples of this batch
  int64_t dataset_size = 0;
  float loss = 0;
};

struct TestLine {
  int64_t epoch = 1;
  int64_t correct = 0;
  int64_t total = 0;
  double loss = 0;  // mean over the test set
};

// The lines that users and Katib read. Rank 0 alone has one. Losses must be finite: Katib reads
// "loss=nan" as an empty value. Each call hands over whole lines.
class Report {
 public:
  using Sink = std::function<void(const std::string& lines)>;
  using Now = std::function<std::chrono::system_clock::time_point()>;
  Report(LineStyle style, LogFormat format, Sink sink, Now now);

  void UsingCuda();
  void PreferNccl();  // CUDA with another backend than nccl
  void UsingBackend(const std::string& backend);
  void WorldSize(int world_size, int rank);
  void BucketsRebuilt();
  void Train(const TrainLine& line);
  void Test(const TestLine& line);
  void Text(const std::string& line);  // a line without metrics; not printed in JSON

 private:
  void Emit(const std::string& line);
  std::string Timestamp() const;

  LineStyle style_;
  LogFormat format_;
  Sink sink_;
  Now now_;
};

// %Y-%m-%dT%H:%M:%SZ in UTC.
std::string Rfc3339(std::chrono::system_clock::time_point time);

}  // namespace mnist
