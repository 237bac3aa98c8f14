#include "network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

namespace ddp {
namespace {

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

struct AddressList {
  addrinfo* head = nullptr;
  ~AddressList() {
    if (head) freeaddrinfo(head);
  }
};

std::string LocalAddress(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  char host[NI_MAXHOST];
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return "";
  if (getnameinfo(reinterpret_cast<sockaddr*>(&storage), size, host, sizeof(host), nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    return "";
  }
  return host;
}

int ConnectError(int fd, const addrinfo& to, std::chrono::milliseconds timeout) {
  if (connect(fd, to.ai_addr, to.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd waiting{fd, POLLOUT, 0};
  if (poll(&waiting, 1, static_cast<int>(timeout.count())) <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

}  // namespace

ConnectAttempt TryConnect(const std::string& host, uint16_t port,
                          std::chrono::milliseconds timeout) {
  ConnectAttempt out;
  AddressList list;
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  const int status = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list.head);
  if (status != 0) {
    out.failure = std::string("the name does not resolve: ") + gai_strerror(status);
    return out;
  }
  for (const addrinfo* to = list.head; to != nullptr; to = to->ai_next) {
    Socket socket(::socket(to->ai_family, to->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (socket.fd() < 0) continue;
    const int error = ConnectError(socket.fd(), *to, timeout);
    if (error == 0) {
      out.connected = true;
      out.local_address = LocalAddress(socket.fd());
      return out;
    }
    out.failure = std::strerror(error);
  }
  return out;
}

std::string SourceAddressFor(const std::string& remote) {
  AddressList list;
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICHOST;
  if (getaddrinfo(remote.c_str(), "9", &hints, &list.head) != 0) return "";
  Socket socket(::socket(list.head->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket.fd() < 0 || connect(socket.fd(), list.head->ai_addr, list.head->ai_addrlen) != 0) {
    return "";
  }
  return LocalAddress(socket.fd());
}

bool IsLoopback(const std::string& numeric_address) {
  return numeric_address.starts_with("127.") || numeric_address == "::1" ||
         numeric_address.starts_with("::ffff:127.");
}

std::string ChooseAddress(
    const std::vector<std::string>& addresses, int rank,
    const std::function<std::string(const std::string&)>& source_address_for) {
  const std::string& own = addresses[rank];
  if (!own.empty() && !IsLoopback(own)) return own;
  for (const std::string& other : addresses) {
    if (other.empty() || IsLoopback(other)) continue;
    if (auto source = source_address_for(other); !source.empty()) return source;
  }
  if (!own.empty()) return own;
  for (const std::string& other : addresses) {
    if (!other.empty()) return other == "::1" ? "::1" : "127.0.0.1";
  }
  return "127.0.0.1";
}

std::string HostIdentity() {
  std::string boot_id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot_id;
  char space[128] = {};
  const ssize_t size = readlink("/proc/self/ns/net", space, sizeof(space) - 1);
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return boot_id + "/" + (size > 0 ? space : "") + "/" + name;
}

}  // namespace ddp
