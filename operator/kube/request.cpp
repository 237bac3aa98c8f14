#include "kube/request.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace kube {
namespace {

using nlohmann::json;

// Silence of a watch that is longer than this beyond its own end means that its connection is dead.
constexpr std::chrono::seconds kWatchMargin{30};
constexpr size_t kMaxForeignText = 300;
constexpr std::chrono::seconds kLongestRetryAfter{600};

HttpRequest Request(const char* method, std::string path, std::string body = "",
                    const char* content_type = "application/json") {
  HttpRequest request;
  request.method = method;
  request.path = std::move(path);
  if (!body.empty()) request.content_type = content_type;
  request.body = std::move(body);
  return request;
}

void AddSelectors(std::string& path, const std::string& labels, const std::string& fields) {
  if (!labels.empty()) AddQuery(path, "labelSelector", labels);
  if (!fields.empty()) AddQuery(path, "fieldSelector", fields);
}

base::ErrorCode CodeOf(int status, const std::string& reason) {
  switch (status) {
    case 400:
    case 405:
    case 406:
    case 413:
    case 415:
      return base::ErrorCode::kInvalidArgument;
    case 401:
      return base::ErrorCode::kUnauthorized;
    case 403:
      return base::ErrorCode::kForbidden;
    case 404:
      return base::ErrorCode::kNotFound;
    case 409:
      return reason == "AlreadyExists" ? base::ErrorCode::kAlreadyExists
                                       : base::ErrorCode::kConflict;
    case 410:
      return base::ErrorCode::kGone;
    case 422:
      return base::ErrorCode::kInvalid;
    case 429:
      return base::ErrorCode::kTooManyRequests;
    case 408:
    case 504:
      return base::ErrorCode::kTimeout;
    default:
      return status >= 500 ? base::ErrorCode::kUnavailable : base::ErrorCode::kInternal;
  }
}

std::chrono::seconds Bounded(long seconds) {
  return std::clamp(std::chrono::seconds(seconds), std::chrono::seconds(0), kLongestRetryAfter);
}

// Foreign text for a message: one line, no control characters, not too long.
std::string Shortened(std::string text) {
  if (text.size() > kMaxForeignText) {
    size_t end = kMaxForeignText;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    text = text.substr(0, end) + "…";
  }
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

}  // namespace

std::string PercentEncode(std::string_view text) {
  constexpr const char* kHex = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      encoded += c;
    } else {
      encoded += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return encoded;
}

void AddQuery(std::string& path, std::string_view name, std::string_view value) {
  path += path.find('?') == std::string::npos ? '?' : '&';
  path += PercentEncode(name) + "=" + PercentEncode(value);
}

std::string ResourcePath(const Resource& resource, const std::string& ns, const std::string& name,
                         const std::string& subresource) {
  std::string path = resource.group.empty() ? "/api/" : "/apis/" + resource.group + "/";
  path += resource.version;
  if (!ns.empty()) path += "/namespaces/" + PercentEncode(ns);
  path += "/" + resource.plural;
  if (!name.empty()) path += "/" + PercentEncode(name);
  if (!subresource.empty()) path += "/" + subresource;
  return path;
}

HttpRequest GetRequest(const Resource& resource, const std::string& ns, const std::string& name) {
  return Request("GET", ResourcePath(resource, ns, name, ""));
}

HttpRequest ListRequest(const Resource& resource, const std::string& ns,
                        const ListOptions& options) {
  std::string path = ResourcePath(resource, ns, "", "");
  AddSelectors(path, options.label_selector, options.field_selector);
  if (options.limit > 0) AddQuery(path, "limit", std::to_string(options.limit));
  // A continued list is bound to its first page's version; the server refuses another one.
  if (!options.continue_token.empty()) {
    AddQuery(path, "continue", options.continue_token);
  } else if (!options.resource_version.empty()) {
    AddQuery(path, "resourceVersion", options.resource_version);
  }
  return Request("GET", std::move(path));
}

HttpRequest WatchRequest(const Resource& resource, const std::string& ns,
                         const WatchOptions& options) {
  std::string path = ResourcePath(resource, ns, "", "");
  AddQuery(path, "watch", "true");
  AddSelectors(path, options.label_selector, "");
  AddQuery(path, "allowWatchBookmarks", "true");
  if (!options.resource_version.empty()) {
    AddQuery(path, "resourceVersion", options.resource_version);
  }
  AddQuery(path, "timeoutSeconds", std::to_string(options.server_timeout.count()));
  HttpRequest request = Request("GET", std::move(path));
  request.timeout = options.server_timeout + kWatchMargin;
  return request;
}

HttpRequest CreateRequest(const Resource& resource, const std::string& ns,
                          const std::string& body) {
  return Request("POST", ResourcePath(resource, ns, "", ""), body);
}

HttpRequest UpdateRequest(const Resource& resource, const std::string& ns, const std::string& name,
                          const std::string& body) {
  return Request("PUT", ResourcePath(resource, ns, name, ""), body);
}

HttpRequest MergePatchRequest(const Resource& resource, const std::string& ns,
                              const std::string& name, const std::string& subresource,
                              const std::string& body) {
  return Request("PATCH", ResourcePath(resource, ns, name, subresource), body,
                 "application/merge-patch+json");
}

HttpRequest DeleteRequest(const Resource& resource, const std::string& ns, const std::string& name,
                          const DeleteOptions& options) {
  json body{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}, {"propagationPolicy", "Background"}};
  if (!options.uid.empty()) body["preconditions"]["uid"] = options.uid;
  if (options.grace_seconds) body["gracePeriodSeconds"] = *options.grace_seconds;
  return Request("DELETE", ResourcePath(resource, ns, name, ""), body.dump());
}

base::Error ErrorOf(const HttpRequest& request, const HttpResponse& response) {
  const json status = json::parse(response.body, nullptr, false);
  std::string message;
  std::string reason;
  long retry_seconds = 0;
  if (status.is_object() && status.value("kind", json()) == "Status") {
    const auto text = [&status](const char* name) {
      const auto found = status.find(name);
      return found != status.end() && found->is_string() ? found->get<std::string>()
                                                         : std::string();
    };
    message = text("message");
    reason = text("reason");
    const auto details = status.find("details");
    if (details != status.end() && details->is_object()) {
      const auto wait = details->find("retryAfterSeconds");
      if (wait != details->end() && wait->is_number_integer()) retry_seconds = wait->get<long>();
    }
  }
  if (message.empty()) {
    // From a proxy, or from a server that is still starting.
    message = request.method + " " + request.path.substr(0, request.path.find('?')) +
              ": HTTP status " + std::to_string(response.status);
    if (const auto shown = Shortened(response.body); !shown.empty()) message += ": " + shown;
  }
  const auto header = response.headers.find("retry-after");
  if (header != response.headers.end()) {
    const std::string& value = header->second;  // seconds; a date is not used by Kubernetes
    if (!value.empty() && value.size() < 8 &&
        value.find_first_not_of("0123456789") == std::string::npos) {
      retry_seconds = std::stol(value);
    }
  }
  return {CodeOf(response.status, reason), std::move(message), Bounded(retry_seconds)};
}

}  // namespace kube
