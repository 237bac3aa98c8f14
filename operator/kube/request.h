#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/client.h"
#include "kube/http.h"

// What the Client sends, and what it makes of the answer: no I/O here.
namespace kube {

// Everything but unreserved characters (RFC 3986) becomes %XX, so also '/'.
std::string PercentEncode(std::string_view text);

// "/api/v1/namespaces/ns/pods/name/status"; ns, name and subresource may be empty.
std::string ResourcePath(const Resource& resource, const std::string& ns, const std::string& name,
                         const std::string& subresource);

HttpRequest GetRequest(const Resource& resource, const std::string& ns, const std::string& name);
HttpRequest ListRequest(const Resource& resource, const std::string& ns,
                        const ListOptions& options);
HttpRequest WatchRequest(const Resource& resource, const std::string& ns,
                         const WatchOptions& options);
HttpRequest CreateRequest(const Resource& resource, const std::string& ns, const std::string& body);
HttpRequest UpdateRequest(const Resource& resource, const std::string& ns, const std::string& name,
                          const std::string& body);
HttpRequest MergePatchRequest(const Resource& resource, const std::string& ns,
                              const std::string& name, const std::string& subresource,
                              const std::string& body);
HttpRequest DeleteRequest(const Resource& resource, const std::string& ns, const std::string& name,
                          const DeleteOptions& options);

// Adds a query parameter, encoded.
void AddQuery(std::string& path, std::string_view name, std::string_view value);

// The error that a response with a status other than 2xx stands for. The message is the one of its
// metav1.Status where it has one, and else what came, shortened.
base::Error ErrorOf(const HttpRequest& request, const HttpResponse& response);

}  // namespace kube
