#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/result.h"

namespace kube {

struct HttpRequest {
  std::string method = "GET";
  std::string path{};  // absolute, with the query, percent-encoded: "/api/v1/pods?limit=500"
  std::string content_type{};  // of `body`
  std::string body{};
  std::chrono::milliseconds timeout{30000};  // whole request; for Stream: longest silence
  std::stop_token stop{};                    // Do: gives up with kCancelled within 200 ms
};

struct HttpResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // keys in lower case
  std::string body;
};

// Called with each block of the body as it arrives; false ends the stream.
using OnData = std::function<bool(std::string_view)>;

// One connection pool to one API server, with its credentials. Thread-safe.
// Errors are transport errors only (kTimeout, kUnavailable, kCancelled); an HTTP status of any
// value is a response.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual base::Result<HttpResponse> Do(const HttpRequest& request) = 0;
  // The body of a 200 goes to `on_data` in blocks and `body` of the response stays empty; the first
  // call has an empty block and says that the 200 has come. The body of any other status is
  // returned as in Do. Returns when the server ends the body (a success), when `on_data` returns
  // false (a success), when nothing came for `request.timeout` (kTimeout), or when `stop` is
  // requested (kCancelled, within 200 ms).
  virtual base::Result<HttpResponse> Stream(const HttpRequest& request, const OnData& on_data,
                                            std::stop_token stop) = 0;
};

struct ServedRequest {
  std::string method;
  std::string path;                            // without the query
  std::map<std::string, std::string> headers;  // keys in lower case
};
struct ServedResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};
using Handler = std::function<ServedResponse(const ServedRequest&)>;

// A small plain-HTTP server for probes and metrics. Serves until destroyed.
class Server {
 public:
  virtual ~Server() = default;
  // The bound port (of use when 0 was asked for).
  virtual int port() const = 0;
};
// `address` is "host:port" or ":port" (all interfaces, IPv4 and IPv6). The handler is called from
// several threads. Fails with kInvalidArgument or kUnavailable ("address in use").
base::Result<std::unique_ptr<Server>> Serve(const std::string& address, Handler handler);

}  // namespace kube
