#pragma once

#include <spdlog/logger.h>

#include <memory>
#include <string>

namespace runtime {

// A logger to stderr. `level`: debug, info, warn, error. `format`: "text", or "json" with one
// object a line: time (RFC 3339), level, message. Thread-safe.
std::shared_ptr<spdlog::logger> MakeLog(const std::string& level, const std::string& format);

// One line of the JSON format, without the line's end.
std::string JsonLogLine(const std::string& time, const std::string& level,
                        const std::string& message);

}  // namespace runtime
