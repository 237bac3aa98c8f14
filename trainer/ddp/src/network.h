#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ddp/result.h"

namespace ddp {

// One try to open a TCP connection to host:port.
struct ConnectAttempt {
  bool connected = false;
  std::string local_address;  // numeric, of our end, when connected
  std::string failure;        // the resolver's or the kernel's words, when not
};
ConnectAttempt TryConnect(const std::string& host, uint16_t port,
                          std::chrono::milliseconds timeout);

// The numeric local address from which the kernel would send to `remote`, a numeric address.
// Empty when there is no route. Sends nothing.
std::string SourceAddressFor(const std::string& remote);

bool IsLoopback(const std::string& numeric_address);

// The address that this rank offers its peers. `addresses` holds each rank's own guess (for
// workers: their end of the connection to the master; empty for rank 0). A loopback guess serves
// only where all ranks share one host; else the route to a rank on another host decides.
std::string ChooseAddress(const std::vector<std::string>& addresses, int rank,
                          const std::function<std::string(const std::string&)>& source_address_for);

// Tells hosts apart: the kernel's boot id, and the network namespace of a container.
std::string HostIdentity();

}  // namespace ddp
