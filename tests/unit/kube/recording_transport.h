#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kube/http.h"

namespace kube {

// A Transport without a network: records each request and answers with what was laid ready, in
// order. A request for which nothing is ready gets kUnavailable.
class RecordingTransport : public Transport {
 public:
  struct Watch {
    std::vector<std::string> blocks{};  // of a 200; none and `result` not ok: the 200 never comes
    base::Result<HttpResponse> result = HttpResponse{200, {}, {}};
    bool until_stop = false;  // stays open after its blocks
  };

  void Answer(base::Result<HttpResponse> response) {
    std::lock_guard lock(mutex_);
    answers_.push_back(std::move(response));
  }
  void Answer(int status, std::string body, std::map<std::string, std::string> headers = {}) {
    Answer(HttpResponse{status, std::move(headers), std::move(body)});
  }
  void AnswerWatch(Watch watch) {
    std::lock_guard lock(mutex_);
    watches_.push_back(std::move(watch));
  }
  std::vector<HttpRequest> requests() const {
    std::lock_guard lock(mutex_);
    return requests_;
  }

  base::Result<HttpResponse> Do(const HttpRequest& request) override {
    std::lock_guard lock(mutex_);
    requests_.push_back(request);
    if (request.stop.stop_requested()) return base::Error{base::ErrorCode::kCancelled, "", {}};
    if (answers_.empty()) return base::Error{base::ErrorCode::kUnavailable, "no answer ready", {}};
    auto answer = std::move(answers_.front());
    answers_.pop_front();
    return answer;
  }

  base::Result<HttpResponse> Stream(const HttpRequest& request, const OnData& on_data,
                                    std::stop_token stop) override {
    Watch watch;
    {
      std::lock_guard lock(mutex_);
      requests_.push_back(request);
      if (watches_.empty()) return base::Error{base::ErrorCode::kUnavailable, "no watch ready", {}};
      watch = std::move(watches_.front());
      watches_.pop_front();
    }
    if (watch.blocks.empty() && !watch.until_stop &&
        (!watch.result.ok() || watch.result->status != 200)) {
      return watch.result;
    }
    if (!on_data("")) return HttpResponse{200, {}, {}};
    for (const auto& block : watch.blocks) {
      if (!on_data(block)) return HttpResponse{200, {}, {}};
    }
    if (watch.until_stop) {
      std::mutex mutex;
      std::unique_lock lock(mutex);
      std::condition_variable_any stopped;
      stopped.wait(lock, stop, [] { return false; });
      return base::Error{base::ErrorCode::kCancelled, "", {}};
    }
    return watch.result;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<HttpRequest> requests_;
  std::deque<base::Result<HttpResponse>> answers_;
  std::deque<Watch> watches_;
};

}  // namespace kube
