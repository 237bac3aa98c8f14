#include "kube/client.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

#include "kube/request.h"
#include "kube/request_limits.h"

namespace kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kFirstRetryDelay{100};

double SecondsSince(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

}  // namespace

struct Client::Limits {
  Limits(double qps, int max_in_flight) : requests(qps, max_in_flight) {}
  RequestLimits requests;
  std::stop_source stop;
};

Client::Client(Transport& transport, ClientOptions options, OnRequest on_request)
    : transport_(transport),
      options_(options),
      on_request_(std::move(on_request)),
      limits_(std::make_unique<Limits>(options.qps, options.max_in_flight)) {}

Client::~Client() = default;

void Client::Cancel() { limits_->stop.request_stop(); }

base::Result<std::string> Client::Send(HttpRequest request, bool idempotent,
                                       std::stop_token caller_stop) {
  std::stop_source either;
  const auto request_stop = [&either] { either.request_stop(); };
  const std::stop_callback on_cancel(limits_->stop.get_token(), request_stop);
  const std::stop_callback on_stop(std::move(caller_stop), request_stop);
  const std::stop_token stop = either.get_token();
  request.timeout = idempotent ? options_.timeout : options_.write_timeout;
  if (!idempotent) {
    // The server stops working on the request by then, too.
    AddQuery(request.path, "timeout", std::to_string(request.timeout.count()) + "ms");
  }
  request.stop = stop;
  const auto start = steady_clock::now();
  const auto deadline = start + request.timeout;
  milliseconds delay = kFirstRetryDelay;
  for (int attempt = 0;; ++attempt) {
    switch (limits_->requests.Enter(deadline, stop)) {
      case RequestLimits::Outcome::kEntered:
        break;
      case RequestLimits::Outcome::kLate:
        return base::Error{base::ErrorCode::kTimeout,
                           request.method + " " + request.path +
                               ": not sent, the limits of this client (qps, requests in flight) "
                               "left no turn in time",
                           {}};
      case RequestLimits::Outcome::kStopped:
        return base::Error{base::ErrorCode::kCancelled, "the client is shutting down", {}};
    }
    request.timeout = std::max(
        milliseconds(1), std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now()));
    const auto sent = steady_clock::now();
    auto response = transport_.Do(request);
    limits_->requests.Leave();
    if (on_request_) {
      on_request_(request.method, response.ok() ? response->status : 0, SecondsSince(sent));
    }
    if (response.ok() && response->status >= 200 && response->status < 300) {
      return std::move(response->body);
    }
    base::Error error = response.ok() ? ErrorOf(request, *response) : response.error();
    // 429 with Retry-After was refused before any work was done, so every verb may be sent again.
    const bool asked_to_wait =
        error.code == base::ErrorCode::kTooManyRequests && error.retry_after.count() > 0;
    const bool again = asked_to_wait || (idempotent && error.code == base::ErrorCode::kUnavailable);
    if (!again || attempt >= options_.retries) return error;
    const auto wait = std::max(delay, error.retry_after);
    if (steady_clock::now() + wait >= deadline) return error;
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any stopped;
    stopped.wait_for(lock, stop, wait, [] { return false; });
    delay *= 2;
  }
}

base::Result<std::string> Client::Get(const Resource& resource, const std::string& ns,
                                      const std::string& name) {
  return Send(GetRequest(resource, ns, name), true);
}

base::Result<std::string> Client::List(const Resource& resource, const std::string& ns,
                                       const ListOptions& options, std::stop_token stop) {
  return Send(ListRequest(resource, ns, options), true, std::move(stop));
}

base::Result<std::string> Client::Create(const Resource& resource, const std::string& ns,
                                         const std::string& body) {
  return Send(CreateRequest(resource, ns, body), false);
}

base::Result<std::string> Client::Update(const Resource& resource, const std::string& ns,
                                         const std::string& name, const std::string& body) {
  return Send(UpdateRequest(resource, ns, name, body), false);
}

base::Result<std::string> Client::MergePatch(const Resource& resource, const std::string& ns,
                                             const std::string& name,
                                             const std::string& subresource,
                                             const std::string& body) {
  return Send(MergePatchRequest(resource, ns, name, subresource, body), false);
}

base::Result<std::string> Client::Delete(const Resource& resource, const std::string& ns,
                                         const std::string& name, const DeleteOptions& options) {
  return Send(DeleteRequest(resource, ns, name, options), false);
}

base::Result<void> Client::Watch(const Resource& resource, const std::string& ns,
                                 const WatchOptions& options, const OnData& on_data,
                                 std::stop_token stop) {
  const HttpRequest request = WatchRequest(resource, ns, options);
  const auto start = steady_clock::now();
  auto response = transport_.Stream(request, on_data, std::move(stop));
  if (on_request_) {
    on_request_(request.method, response.ok() ? response->status : 0, SecondsSince(start));
  }
  if (!response.ok()) return response.error();
  if (response->status != 200) return ErrorOf(request, *response);
  return {};
}

}  // namespace kube
