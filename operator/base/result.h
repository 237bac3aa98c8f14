#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <variant>

namespace base {

// What a caller can do about a failure. The names follow the reasons of Kubernetes' metav1.Status
// where one exists.
enum class ErrorCode {
  kInvalidArgument,  // the caller's input is wrong: do not retry
  kUnauthorized,     // 401: credentials missing or expired
  kForbidden,        // 403: RBAC, quota or an admission plugin
  kNotFound,         // 404
  kAlreadyExists,    // 409, reason AlreadyExists
  kConflict,         // 409, any other: resourceVersion or a precondition did not hold
  kGone,             // 410, reason Expired: relist
  kInvalid,          // 422: the object was refused by validation
  kTooManyRequests,  // 429: wait `retry_after`
  kTimeout,          // our own deadline, or 504: the request may have been applied
  kUnavailable,      // connection failed, 5xx: the request may have been applied
  kCancelled,        // stop was asked for
  kInternal,         // a reply that makes no sense
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;                       // for users: the server's own words where there are any
  std::chrono::milliseconds retry_after{0};  // what the server asked for, 0 = nothing
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

}  // namespace base
