#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/model.h"

namespace core {

using Json = nlohmann::json;

// Reads of JSON of any shape: what is missing or of another type counts as not set.
inline const Json& Get(const Json& object, const char* key) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  auto it = object.find(key);
  return it == object.end() ? kNull : *it;
}
inline std::string GetString(const Json& object, const char* key) {
  const Json& value = Get(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}
inline std::optional<int64_t> GetInt64(const Json& object, const char* key) {
  const Json& value = Get(object, key);
  if (value.is_number_unsigned()) {
    auto v = value.get<uint64_t>();
    if (v > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
    return static_cast<int64_t>(v);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  return std::nullopt;
}
inline std::optional<int> GetInt(const Json& object, const char* key) {
  auto value = GetInt64(object, key);
  if (!value || *value < std::numeric_limits<int>::min() ||
      *value > std::numeric_limits<int>::max()) {
    return std::nullopt;
  }
  return static_cast<int>(*value);
}
inline bool GetBool(const Json& object, const char* key) {
  const Json& value = Get(object, key);
  return value.is_boolean() && value.get<bool>();
}
inline std::optional<TimePoint> GetTime(const Json& object, const char* key) {
  return ParseTime(GetString(object, key));
}
// Compact text; invalid UTF-8 is replaced, never thrown at.
inline std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace core
