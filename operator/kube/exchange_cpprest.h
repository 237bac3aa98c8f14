#pragma once

#include <cpprest/astreambuf.h>
#include <cpprest/http_msg.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "base/result.h"

namespace kube {

// One request on its way: cpprestsdk's threads put status, body and end in, the caller's thread
// takes them out, with a deadline and a stop token that cpprestsdk does not know. It is the stream
// buffer that cpprestsdk writes the body to, so that blocks arrive as they were received. Shared by
// both sides, since a caller that has given up does not wait for cpprestsdk to let go.
class Exchange : public concurrency::streams::details::streambuf_state_manager<uint8_t> {
 public:
  // When this much waits to be taken, nothing more is read from the connection.
  explicit Exchange(size_t high_water)
      : streambuf_state_manager(std::ios_base::out), high_water_(high_water) {}

  // --- cpprestsdk's side ---
  void Head(int status, std::map<std::string, std::string> headers) {
    std::lock_guard lock(mutex_);
    status_ = status;
    headers_ = std::move(headers);
    changed_.notify_all();
  }
  void End(std::optional<base::Error> error) {
    std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = true;
    error_ = std::move(error);
    changed_.notify_all();
  }

  // --- the caller's side ---
  enum class Event { kHead, kBody, kEnd, kDeadline, kStopped };

  Event AwaitHead(std::chrono::steady_clock::time_point deadline, const std::stop_token& stop) {
    return Await(deadline, stop, [this] { return status_ != 0 || ended_; });
  }
  Event AwaitBody(std::chrono::steady_clock::time_point deadline, const std::stop_token& stop) {
    return Await(deadline, stop, [this] { return !body_.empty() || ended_; });
  }
  Event AwaitEnd(std::chrono::steady_clock::time_point deadline, const std::stop_token& stop) {
    return Await(deadline, stop, [this] { return ended_; });
  }
  std::string TakeBody() {
    std::string taken;
    std::optional<pplx::task_completion_event<size_t>> resume;
    {
      std::lock_guard lock(mutex_);
      taken.swap(body_);
      resume.swap(held_back_);
    }
    if (resume) resume->set(held_size_);
    return taken;
  }
  bool ended() {
    std::lock_guard lock(mutex_);
    return ended_;
  }
  int status() {
    std::lock_guard lock(mutex_);
    return status_;
  }
  std::map<std::string, std::string> headers() {
    std::lock_guard lock(mutex_);
    return headers_;
  }
  std::optional<base::Error> error() {
    std::lock_guard lock(mutex_);
    return error_;
  }

 private:
  template <class Ready>
  Event Await(std::chrono::steady_clock::time_point deadline, const std::stop_token& stop,
              Ready ready) {
    std::unique_lock lock(mutex_);
    const bool in_time = changed_.wait_until(lock, stop, deadline, ready);
    if (stop.stop_requested()) return Event::kStopped;
    if (!in_time) return Event::kDeadline;
    if (!body_.empty() && status_ != 0) return Event::kBody;
    return ended_ ? Event::kEnd : Event::kHead;
  }

  pplx::task<size_t> _putn(const uint8_t* data, size_t count) override {
    std::lock_guard lock(mutex_);
    body_.append(reinterpret_cast<const char*>(data), count);
    changed_.notify_all();
    if (body_.size() < high_water_) return pplx::task_from_result(count);
    held_back_.emplace();
    held_size_ = count;
    return pplx::create_task(*held_back_);
  }
  pplx::task<int_type> _putc(uint8_t c) override {
    return _putn(&c, 1).then([c](size_t) { return static_cast<int_type>(c); });
  }
  pplx::task<bool> _sync() override { return pplx::task_from_result(true); }

  // A buffer that is only written to.
  bool can_seek() const override { return false; }
  bool has_size() const override { return false; }
  size_t buffer_size(std::ios_base::openmode) const override { return 0; }
  void set_buffer_size(size_t, std::ios_base::openmode) override {}
  size_t in_avail() const override { return 0; }
  pos_type getpos(std::ios_base::openmode) const override { return traits::eof(); }
  pos_type seekpos(pos_type, std::ios_base::openmode) override { return traits::eof(); }
  pos_type seekoff(off_type, std::ios_base::seekdir, std::ios_base::openmode) override {
    return traits::eof();
  }
  bool acquire(uint8_t*&, size_t&) override { return false; }
  void release(uint8_t*, size_t) override {}
  pplx::task<int_type> _bumpc() override { return Eof(); }
  int_type _sbumpc() override { return traits::eof(); }
  pplx::task<int_type> _getc() override { return Eof(); }
  int_type _sgetc() override { return traits::eof(); }
  pplx::task<int_type> _nextc() override { return Eof(); }
  pplx::task<int_type> _ungetc() override { return Eof(); }
  pplx::task<size_t> _getn(uint8_t*, size_t) override { return pplx::task_from_result<size_t>(0); }
  size_t _scopy(uint8_t*, size_t) override { return 0; }
  uint8_t* _alloc(size_t) override { return nullptr; }
  void _commit(size_t) override {}
  static pplx::task<int_type> Eof() { return pplx::task_from_result<int_type>(traits::eof()); }

  const size_t high_water_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  int status_ = 0;  // all below: guarded by mutex_
  std::map<std::string, std::string> headers_;
  std::string body_;
  bool ended_ = false;
  std::optional<base::Error> error_;
  std::optional<pplx::task_completion_event<size_t>> held_back_;
  size_t held_size_ = 0;
};

}  // namespace kube
