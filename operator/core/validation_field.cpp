#include "core/validation_field.h"

#include <algorithm>

namespace core {

namespace {

constexpr size_t kMaxQuoted = 64;

// The first `max` bytes, never ending inside a UTF-8 sequence.
std::string Cut(const std::string& text, size_t max) {
  if (text.size() <= max) return text;
  size_t end = max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

}  // namespace

void FieldErrors::Add(const std::string& path, std::string message) {
  if (Full() || !paths_.insert(path).second) return;
  errors_.push_back({path, std::move(message)});
}

std::string Quoted(const Json& value) {
  if (value.is_object() || value.is_array()) return value.type_name();
  if (value.is_string()) return Dump(Json(Cut(value.get_ref<const std::string&>(), kMaxQuoted)));
  return Dump(value);
}

void Field::Invalid(const std::string& what) const {
  const bool scalar = Present() && value_.is_primitive();
  Fail("Invalid value: " + (scalar ? Quoted(value_) + ": " : "") + what);
}

Field Field::operator[](std::string_view key) const {
  std::string name(key);
  const Json& child = Get(value_, name.c_str());
  return Field(child, path_.empty() ? name : path_ + "." + name, errors_);
}

Field Field::At(size_t index) const {
  static const Json kNull;
  const bool exists = value_.is_array() && index < value_.size();
  return Field(exists ? value_[index] : kNull, path_ + "[" + std::to_string(index) + "]", errors_);
}

bool Field::Require() const {
  if (!Present()) Fail("Required value");
  return Present();
}

bool Field::Is(bool matches, std::string_view type) const {
  if (Present() && !matches) {
    Invalid("must be of type " + std::string(type));
  }
  return matches;
}

bool Field::IsObject() const { return Is(value_.is_object(), "object"); }
bool Field::IsArray() const { return Is(value_.is_array(), "array"); }
bool Field::IsString() const { return Is(value_.is_string(), "string"); }
bool Field::IsBoolean() const { return Is(value_.is_boolean(), "boolean"); }

std::optional<int64_t> Field::Integer(int64_t min, int64_t max) const {
  if (!Is(value_.is_number_integer(), "integer")) return std::nullopt;
  const bool huge =
      value_.is_number_unsigned() && value_.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  const int64_t number = huge ? INT64_MAX : value_.get<int64_t>();
  if (number < min) {
    Invalid("should be greater than or equal to " + std::to_string(min));
    return std::nullopt;
  }
  if (huge || number > max) {
    Invalid("should be less than or equal to " + std::to_string(max));
    return std::nullopt;
  }
  return number;
}

std::optional<int64_t> Field::Int32() const { return Integer(INT32_MIN, INT32_MAX); }

void Field::OneOf(std::initializer_list<std::string_view> allowed, bool allow_empty) const {
  if (!IsString()) return;
  const auto& text = value_.get_ref<const std::string&>();
  if (text.empty() && allow_empty) return;
  if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) return;
  std::string values;
  for (std::string_view value : allowed) {
    values += (values.empty() ? "\"" : ", \"") + std::string(value) + "\"";
  }
  Fail("Unsupported value: " + Quoted(value_) + ": supported values: " + values);
}

void Field::ArrayOfStrings() const {
  if (!IsArray()) return;
  for (size_t i = 0; i < value_.size() && !Full(); ++i) {
    if (Field element = At(i); element.Require()) element.IsString();
  }
}

void Field::MapOfStrings() const {
  if (!IsObject()) return;
  for (const auto& [key, member] : value_.items()) {
    if (Full()) return;
    if (member.is_string() || member.is_null()) continue;
    Field(member, path_ + "." + Cut(key, kMaxQuoted), errors_).IsString();
  }
}

}  // namespace core
