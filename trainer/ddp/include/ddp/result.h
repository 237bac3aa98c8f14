#pragma once

#include <string>
#include <utility>
#include <variant>

namespace ddp {

// What went wrong, by what the caller can do about it.
enum class ErrorKind {
  kInvalid,      // the caller's input (environment, option, argument) is wrong: do not retry
  kFailed,       // this process cannot go on: do not retry
  kIo,           // a file could not be read or written
  kDamaged,      // a file was read but its content is broken
  kDisagree,     // the ranks were started with different settings or data
  kUnreachable,  // the group did not come together in time: a retry may succeed
  kPeerLost,     // a rank died, hangs or left: a retry may succeed
};

struct Error {
  ErrorKind kind = ErrorKind::kFailed;
  std::string message;  // for users: what was wrong, where, what to do
};

// A value or an Error. `T` must not be Error.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}      // NOLINT: implicit by intent
  Result(Error error) : value_(std::move(error)) {}  // NOLINT: implicit by intent

  bool ok() const { return std::holds_alternative<T>(value_); }
  explicit operator bool() const { return ok(); }
  const T& value() const& { return std::get<T>(value_); }
  T& value() & { return std::get<T>(value_); }
  T&& value() && { return std::get<T>(std::move(value_)); }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::get<T>(std::move(value_)); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }
  const Error& error() const { return std::get<Error>(value_); }

 private:
  std::variant<T, Error> value_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), ok_(false) {}  // NOLINT: implicit by intent

  bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }
  const Error& error() const { return error_; }

 private:
  Error error_;
  bool ok_ = true;
};

}  // namespace ddp
