#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/http.h"

namespace kube {

// A kind of object as the REST API names it, e.g. {"", "v1", "pods"} or
// {"kubeflow.org", "v1", "pytorchjobs"}.
struct Resource {
  std::string group;
  std::string version;
  std::string plural;
};

struct ListOptions {
  std::string label_selector{};
  std::string field_selector{};
  int limit = 500;                 // objects a page
  std::string continue_token{};    // of the page before
  std::string resource_version{};  // "" = most recent, "0" = any cached
};

struct WatchOptions {
  std::string label_selector{};
  std::string resource_version{};
  std::chrono::seconds server_timeout{300};  // timeoutSeconds: the server ends the watch by itself
};

struct DeleteOptions {
  std::string uid{};                   // precondition; "" = none
  std::optional<int> grace_seconds{};  // not set: the object's own
};

struct ClientOptions {
  std::chrono::milliseconds timeout{30000};  // of one GET or LIST
  // Of one write. Shorter than the gap between a leader's renew deadline and the end of its lease
  // (see lease.h), and told to the server too, so that no write is applied after another leader has
  // begun.
  std::chrono::milliseconds write_timeout{4000};
  double qps = 0;          // requests a second, 0 = no limit
  int max_in_flight = 64;  // more wait for their turn
  int retries = 3;  // of GET and LIST on kUnavailable and of any verb on 429 with Retry-After
};

// What happened to a request, for metrics: verb (method), HTTP status (0 = transport error),
// seconds.
using OnRequest = std::function<void(std::string_view method, int status, double seconds)>;

// Verbs of the Kubernetes REST API. Bodies are JSON text, replies are the server's JSON text.
// Thread-safe. Errors carry the `message` of metav1.Status; every code of base::ErrorCode can
// occur. Namespace "" means all namespaces (list, watch) or a cluster-scoped object.
class Client {
 public:
  Client(Transport& transport, ClientOptions options, OnRequest on_request = {});
  ~Client();

  base::Result<std::string> Get(const Resource& resource, const std::string& ns,
                                const std::string& name);
  // One page; the caller follows metadata.continue. `stop` ends it with kCancelled, as Cancel()
  // does.
  base::Result<std::string> List(const Resource& resource, const std::string& ns,
                                 const ListOptions& options, std::stop_token stop = {});
  base::Result<std::string> Create(const Resource& resource, const std::string& ns,
                                   const std::string& body);
  base::Result<std::string> Update(const Resource& resource, const std::string& ns,
                                   const std::string& name, const std::string& body);
  // RFC 7386. `subresource` "" or "status".
  base::Result<std::string> MergePatch(const Resource& resource, const std::string& ns,
                                       const std::string& name, const std::string& subresource,
                                       const std::string& body);
  // kNotFound if it is gone, kConflict if the uid differs. Returns the reply (object or Status).
  base::Result<std::string> Delete(const Resource& resource, const std::string& ns,
                                   const std::string& name, const DeleteOptions& options);
  // Blocks of the watch's body, as they arrive, not split in lines; first an empty one when the
  // server has accepted. Success when the server ended it.
  base::Result<void> Watch(const Resource& resource, const std::string& ns,
                           const WatchOptions& options, const OnData& on_data,
                           std::stop_token stop);

  // For shutdown: requests in flight (watches excepted, they have their own token) and all later
  // ones end with kCancelled. A cancelled write may have been applied.
  void Cancel();

 private:
  struct Limits;
  base::Result<std::string> Send(HttpRequest request, bool idempotent, std::stop_token stop = {});
  Transport& transport_;
  ClientOptions options_;
  OnRequest on_request_;
  std::unique_ptr<Limits> limits_;
};

}  // namespace kube
