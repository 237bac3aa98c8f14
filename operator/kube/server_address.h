#pragma once

#include <string>

#include "base/result.h"

namespace kube {

// The parts of a server's URL that a TLS client needs.
struct ServerAddress {
  bool https = false;
  std::string host;  // DNS name or address, an IPv6 address without brackets
  int port = 0;
  std::string path;  // "" or "/prefix"
  // For cpprestsdk, which hands brackets on to the resolver: an IPv6 address goes without them.
  std::string library_uri;
  std::string host_header;  // "" = what the library makes of library_uri
};

// Accepts http and https, with or without port and path. kInvalidArgument says what is wrong.
base::Result<ServerAddress> ParseServerAddress(const std::string& url);

}  // namespace kube
