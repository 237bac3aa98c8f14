#include "kube/server_address.h"

#include <algorithm>
#include <cctype>

namespace kube {
namespace {

base::Error Invalid(const std::string& url, const std::string& why) {
  return {base::ErrorCode::kInvalidArgument,
          "\"" + url + "\" is no URL of an API server (https://host:port): " + why,
          {}};
}

bool AllDigits(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

base::Result<ServerAddress> ParseServerAddress(const std::string& url) {
  ServerAddress address;
  std::string rest;
  if (url.rfind("https://", 0) == 0) {
    address.https = true;
    rest = url.substr(8);
  } else if (url.rfind("http://", 0) == 0) {
    rest = url.substr(7);
  } else {
    return Invalid(url, "it starts neither with https:// nor with http://");
  }
  if (rest.find_first_of("?#@ ") != std::string::npos) {
    return Invalid(url, "user names, queries and fragments have no place in it");
  }
  const auto slash = std::min(rest.find('/'), rest.size());
  address.path = rest.substr(slash);
  while (!address.path.empty() && address.path.back() == '/') address.path.pop_back();
  rest.resize(slash);

  std::string port;
  const bool brackets = !rest.empty() && rest.front() == '[';
  if (brackets) {
    const auto end = rest.find(']');
    if (end == std::string::npos) return Invalid(url, "] is missing");
    address.host = rest.substr(1, end - 1);
    if (end + 1 < rest.size()) {
      if (rest[end + 1] != ':') return Invalid(url, "after ] only a port may follow");
      port = rest.substr(end + 2);
      if (port.empty()) return Invalid(url, "the port is empty");
    }
  } else {
    const auto colon = std::min(rest.find(':'), rest.size());
    address.host = rest.substr(0, colon);
    if (colon < rest.size()) {
      port = rest.substr(colon + 1);
      if (!AllDigits(port)) return Invalid(url, "the port is no number (IPv6 needs brackets)");
    }
  }
  if (address.host.empty()) return Invalid(url, "the host is empty");
  address.port = address.https ? 443 : 80;
  if (!port.empty()) {
    if (!AllDigits(port) || port.size() > 5 || std::stoi(port) < 1 || std::stoi(port) > 65535) {
      return Invalid(url, "the port is not within 1 to 65535");
    }
    address.port = std::stoi(port);
  }
  const std::string scheme = address.https ? "https://" : "http://";
  std::string port_text(":");
  port_text.append(std::to_string(address.port));
  address.library_uri = scheme + address.host + port_text + address.path;
  if (brackets) address.host_header.append("[").append(address.host).append("]").append(port_text);
  return address;
}

}  // namespace kube
