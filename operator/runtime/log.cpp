#include "runtime/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "core/json.h"

namespace runtime {
namespace {

class JsonFormatter : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& msg, spdlog::memory_buf_t& out) override {
    const auto time = std::chrono::time_point_cast<std::chrono::milliseconds>(msg.time);
    const auto level = spdlog::level::to_string_view(msg.level);
    const std::string line =
        JsonLogLine(core::FormatTime(time), std::string(level.data(), level.size()),
                    std::string(msg.payload.data(), msg.payload.size())) +
        "\n";
    out.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>();
  }
};

}  // namespace

std::string JsonLogLine(const std::string& time, const std::string& level,
                        const std::string& message) {
  return core::Dump({{"time", time}, {"level", level}, {"message", message}});
}

std::shared_ptr<spdlog::logger> MakeLog(const std::string& level, const std::string& format) {
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  auto log = std::make_shared<spdlog::logger>("pytorch-operator", std::move(sink));
  log->set_level(level == "warn" ? spdlog::level::warn : spdlog::level::from_str(level));
  log->flush_on(spdlog::level::trace);
  if (format == "json") {
    log->set_formatter(std::make_unique<JsonFormatter>());
  } else {
    log->set_pattern("%Y-%m-%dT%H:%M:%S.%e %-5l %v");
  }
  return log;
}

}  // namespace runtime
