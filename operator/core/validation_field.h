#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "core/validation.h"

namespace core {

// Errors in the order in which they were found: the first of each path, at most kMax.
class FieldErrors {
 public:
  static constexpr size_t kMax = 100;

  void Add(const std::string& path, std::string message);
  bool Full() const { return errors_.size() >= kMax; }
  std::vector<FieldError> Take() && { return std::move(errors_); }

 private:
  std::vector<FieldError> errors_;
  std::set<std::string> paths_;
};

// A place in a JSON document, there or not, that checks itself and reports to FieldErrors. Checks
// of an absent field (missing or null) pass; messages are worded as the API server words its own.
// Borrows the document and the FieldErrors.
class Field {
 public:
  Field(const Json& value, std::string path, FieldErrors& errors)
      : value_(value), path_(std::move(path)), errors_(errors) {}

  const std::string& path() const { return path_; }
  const Json& value() const { return value_; }
  bool Present() const { return !value_.is_null(); }

  // The member of an object, or element of an array; absent when this is neither.
  Field operator[](std::string_view key) const;
  Field At(size_t index) const;

  // Reports this field: "Invalid value: <value>: <what>", the value only of a scalar.
  void Invalid(const std::string& what) const;
  void Fail(std::string message) const { errors_.Add(path_, std::move(message)); }
  // Reports an absent field; true when it is present.
  bool Require() const;
  // True when present and of that type; reports another type.
  bool IsObject() const;
  bool IsArray() const;
  bool IsString() const;
  bool IsBoolean() const;
  // The value, when it is an integer in [min, max]; reports anything else.
  std::optional<int64_t> Integer(int64_t min, int64_t max) const;
  std::optional<int64_t> Int32() const;
  // Reports a string that is none of `allowed`; "" counts as not set when `allow_empty`.
  void OneOf(std::initializer_list<std::string_view> allowed, bool allow_empty) const;
  // Reports whatever is not an array of strings, or not an object whose members are strings.
  void ArrayOfStrings() const;
  void MapOfStrings() const;
  bool Full() const { return errors_.Full(); }

 private:
  bool Is(bool matches, std::string_view type) const;

  const Json& value_;
  std::string path_;
  FieldErrors& errors_;
};

// A user's value for a message: a string in quotes, cut to 64 bytes; an object or array by its type
// alone.
std::string Quoted(const Json& value);

}  // namespace core
