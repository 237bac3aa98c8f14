#pragma once

#include <memory>
#include <string>

#include "base/result.h"

struct ssl_st;
struct ssl_ctx_st;

namespace kube {

// PEM texts; empty where there is none.
struct TlsMaterial {
  std::string ca;           // one certificate or more; empty: the system's certificates are trusted
  std::string client_cert;  // leaf first
  std::string client_key;

  bool operator==(const TlsMaterial&) const = default;
};

// Parsed certificates and the rules to verify a server, shared by all connections of one client.
// Given CA certificates replace the system's, they are not added to them. Immutable but for the
// last verification error; thread-safe.
class TlsContext {
 public:
  // `server_name` is the DNS name or IP address that the server's certificate must be for.
  // Fails with kInvalidArgument: no PEM, or a key that does not fit its certificate.
  static base::Result<std::shared_ptr<TlsContext>> Parse(const TlsMaterial& material,
                                                         const std::string& server_name,
                                                         bool insecure);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // Called when a handshake begins, so when the socket is connected, with what was attached.
  using OnConnected = void (*)(void* socket);
  // Prepares a context; this object must outlive its connections. False if OpenSSL refused.
  bool Apply(ssl_ctx_st* context, OnConnected on_connected);
  static void Attach(ssl_st* connection, void* socket);

  // Why the last server was refused, "" if none was.
  std::string LastVerifyError() const;

 private:
  struct State;
  explicit TlsContext(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kube
