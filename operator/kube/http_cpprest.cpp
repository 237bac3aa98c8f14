#include <cpprest/http_client.h>
#include <cpprest/producerconsumerstream.h>
#include <netinet/tcp.h>
#include <pplx/threadpool.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <cctype>
#include <mutex>
#include <utility>

#include "kube/config.h"
#include "kube/credentials.h"
#include "kube/exchange_cpprest.h"
#include "kube/http.h"
#include "kube/server_address.h"
#include "kube/tls_openssl.h"

namespace kube {
namespace {

namespace rest = web::http;
using std::chrono::steady_clock;
using Tcp = boost::asio::ip::tcp;
using TlsStream = boost::asio::ssl::stream<Tcp::socket&>;

// cpprestsdk's own timer counts silence and is one for all requests of a client. Ours are by
// request, so its is only the last resort for a connection that nobody waits for any more.
constexpr std::chrono::hours kLibraryTimeout{1};
constexpr size_t kStreamHighWater = 8 << 20;
constexpr size_t kBodyHighWater = size_t{1} << 30;

// A connection whose other end is gone without a word is found by the kernel in this time.
constexpr int kKeepaliveIdleSeconds = 15;
constexpr int kKeepaliveIntervalSeconds = 5;
constexpr int kKeepaliveProbes = 3;
constexpr int kUserTimeoutMilliseconds = 30000;

// The library's thread pool is one for the process, with 40 threads unless told otherwise before
// its first use. Its threads only move bytes and call back: 4 are faster than 40.
void StartLibraryThreads() {
  static std::once_flag once;
  std::call_once(once, [] {
    try {
      crossplat::threadpool::initialize_with_threads(4);
    } catch (const std::exception&) {
      // Somebody else in this process has started it: theirs will do.
    }
  });
}

void WatchForDeadPeer(void* tcp_socket) {
  const int fd = static_cast<Tcp::socket*>(tcp_socket)->native_handle();
  const auto set = [fd](int level, int option, int value) {
    ::setsockopt(fd, level, option, &value, sizeof value);  // a failure costs speed only
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kKeepaliveIdleSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kKeepaliveIntervalSeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, kKeepaliveProbes);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMilliseconds);
}

base::Error Failure(base::ErrorCode code, std::string message) {
  return {code, std::move(message), {}};
}

// Keeps an Exchange as cpprestsdk's output stream.
class OutputBuffer : public concurrency::streams::streambuf<uint8_t> {
 public:
  explicit OutputBuffer(const std::shared_ptr<Exchange>& exchange) : streambuf(exchange) {}
};

// The library sends a request again by itself when the connection, kept from an earlier one, breaks
// before the answer: it takes it for one that was closed meanwhile. But the server may have acted
// on the request, and its time may have passed. It can't do so with a body that can't be rewound.
concurrency::streams::istream ReadOnce(const std::string& body) {
  concurrency::streams::producer_consumer_buffer<uint8_t> buffer(body.size());
  buffer.putn_nocopy(reinterpret_cast<const uint8_t*>(body.data()), body.size()).get();
  buffer.close(std::ios_base::out).get();
  return buffer.create_istream();
}

class CpprestTransport : public Transport {
 public:
  CpprestTransport(const Config& config, ServerAddress address)
      : config_(config), address_(std::move(address)), credentials_(config) {
    StartLibraryThreads();
  }

  // For early and clear errors: reads all files, parses them, connects nowhere.
  base::Result<void> Check() {
    auto connection = Connect();
    if (!connection.ok()) return connection.error();
    return {};
  }

  base::Result<HttpResponse> Do(const HttpRequest& request) override {
    const auto deadline = steady_clock::now() + request.timeout;
    auto response = DoOnce(request, deadline);
    if (response.ok() && response->status == 401) {
      // The server has not looked at the request, so any verb may be sent again.
      credentials_.Distrust();
      return DoOnce(request, deadline);
    }
    return response;
  }

  base::Result<HttpResponse> Stream(const HttpRequest& request, const OnData& on_data,
                                    std::stop_token stop) override {
    auto sent = Send(request, kStreamHighWater);
    if (!sent.ok()) return sent.error();
    Flight& flight = *sent;
    const Abort abort(flight);
    auto event = flight.exchange->AwaitHead(steady_clock::now() + request.timeout, stop);
    if (auto error = Problem(event, *flight.exchange, "no answer", request.timeout)) return *error;
    HttpResponse response{flight.exchange->status(), flight.exchange->headers(), {}};
    if (response.status == 401) credentials_.Distrust();
    const bool to_caller = response.status == 200;
    if (to_caller && !on_data({})) return response;
    while (true) {
      event = flight.exchange->AwaitBody(steady_clock::now() + request.timeout, stop);
      if (event == Exchange::Event::kBody) {
        const std::string block = flight.exchange->TakeBody();
        if (!to_caller) {
          response.body += block;
        } else if (!on_data(block)) {
          return response;
        }
        continue;
      }
      if (auto error = Problem(event, *flight.exchange, "silence", request.timeout)) return *error;
      return response;
    }
  }

 private:
  struct Connection {
    rest::client::http_client client;
    std::shared_ptr<TlsContext> tls;
    long generation;
  };
  struct Flight {
    std::shared_ptr<Exchange> exchange;
    pplx::cancellation_token_source cancel;
    std::shared_ptr<Connection> connection;
  };
  // Closes the connection of a request that has not ended when its caller leaves.
  class Abort {
   public:
    explicit Abort(Flight& flight) : flight_(flight) {}
    ~Abort() {
      if (flight_.exchange->ended()) return;
      flight_.cancel.cancel();
      flight_.exchange->TakeBody();  // lets a writer go that is held back
    }

   private:
    Flight& flight_;
  };

  base::Result<HttpResponse> DoOnce(const HttpRequest& request, steady_clock::time_point deadline) {
    auto sent = Send(request, kBodyHighWater);
    if (!sent.ok()) return sent.error();
    const Abort abort(*sent);
    Exchange& exchange = *sent->exchange;
    const auto event = exchange.AwaitEnd(deadline, request.stop);
    if (auto error = Problem(event, exchange, "no complete answer", request.timeout)) return *error;
    return HttpResponse{exchange.status(), exchange.headers(), exchange.TakeBody()};
  }

  std::optional<base::Error> Problem(Exchange::Event event, Exchange& exchange, const char* what,
                                     std::chrono::milliseconds limit) const {
    if (event == Exchange::Event::kStopped) {
      return Failure(base::ErrorCode::kCancelled, config_.server + ": cancelled");
    }
    if (event == Exchange::Event::kDeadline) {
      return Failure(base::ErrorCode::kTimeout, config_.server + ": " + what + " for " +
                                                    std::to_string(limit.count()) + " ms");
    }
    return exchange.error();
  }

  // The client for the present TLS material. An older one lives on until its requests have ended.
  base::Result<std::pair<std::shared_ptr<Connection>, std::string>> Connect() {
    auto identity = credentials_.Current(steady_clock::now());
    if (!identity.ok()) return identity.error();
    std::lock_guard lock(mutex_);
    if (!connection_ || connection_->generation != identity->tls_generation) {
      auto made = MakeConnection(*identity);
      if (!made.ok() && !connection_) return made.error();
      // Files may be seen half-way through a rotation: the next look will find them whole.
      if (made.ok()) connection_ = std::move(*made);
    }
    return std::pair{connection_, identity->token};
  }

  base::Result<std::shared_ptr<Connection>> MakeConnection(const Identity& identity) const {
    rest::client::http_client_config settings;
    settings.set_timeout(kLibraryTimeout);
    settings.set_max_redirects(0);  // a redirect would carry the token elsewhere
    std::shared_ptr<TlsContext> tls;
    if (address_.https) {
      const std::string& name =
          config_.tls_server_name.empty() ? address_.host : config_.tls_server_name;
      auto parsed = TlsContext::Parse(identity.tls, name, config_.insecure_skip_tls_verify);
      if (!parsed.ok()) {
        return Failure(parsed.error().code, config_.origin + ": " + parsed.error().message);
      }
      tls = std::move(*parsed);
      settings.set_validate_certificates(!config_.insecure_skip_tls_verify);
      settings.set_tlsext_sni_enabled(false);  // TlsContext does it
      settings.set_ssl_context_callback([tls](boost::asio::ssl::context& context) {
        if (!tls->Apply(context.native_handle(), &WatchForDeadPeer)) {
          throw std::runtime_error("OpenSSL refused the client certificate or its key");
        }
      });
      if (config_.proxy_url.empty()) {  // else the handle is of either type
        settings.set_nativehandle_options([](rest::client::native_handle handle) {
          auto* stream = static_cast<TlsStream*>(handle);
          TlsContext::Attach(stream->native_handle(), &stream->next_layer());
        });
      }
    }
    try {
      if (!config_.proxy_url.empty()) settings.set_proxy(Proxy());
      return std::make_shared<Connection>(
          Connection{rest::client::http_client(rest::uri(address_.library_uri), settings),
                     std::move(tls), identity.tls_generation});
    } catch (const std::exception& e) {
      return Failure(base::ErrorCode::kInvalidArgument,
                     config_.origin + ": server " + config_.server + ": " + e.what());
    }
  }

  web::web_proxy Proxy() const {
    const rest::uri uri(config_.proxy_url);
    web::web_proxy proxy(uri);
    if (const auto& user = uri.user_info(); !user.empty()) {
      const auto colon = std::min(user.find(':'), user.size());
      proxy.set_credentials(web::credentials(
          rest::uri::decode(user.substr(0, colon)),
          colon < user.size() ? rest::uri::decode(user.substr(colon + 1)) : std::string()));
    }
    return proxy;
  }

  base::Result<Flight> Send(const HttpRequest& request, size_t high_water) {
    auto connected = Connect();
    if (!connected.ok()) return connected.error();
    auto [connection, token] = std::move(*connected);
    Flight flight{std::make_shared<Exchange>(high_water), {}, connection};
    try {
      rest::http_request message(request.method);
      message.set_request_uri(rest::uri(request.path));
      auto& headers = message.headers();
      if (!address_.host_header.empty()) headers.add("Host", address_.host_header);
      headers.add("Accept", "application/json");
      headers.add("User-Agent", "pytorch-operator");
      if (!token.empty()) headers.add("Authorization", "Bearer " + token);
      if (!request.body.empty()) {
        message.set_body(ReadOnce(request.body), request.body.size(), request.content_type);
      }
      message.set_response_stream(
          concurrency::streams::basic_ostream<uint8_t>(OutputBuffer(flight.exchange)));
      const auto exchange = flight.exchange;
      const auto fail = [exchange, connection, server = config_.server](const std::exception& e) {
        exchange->End(Explain(e, server, connection->tls.get()));
      };
      connection->client.request(message, flight.cancel.get_token())
          .then([exchange, fail](pplx::task<rest::http_response> head) {
            try {
              const rest::http_response response = head.get();
              std::map<std::string, std::string> lower;
              for (const auto& [key, value] : response.headers()) {
                std::string name = key;
                std::transform(name.begin(), name.end(), name.begin(),
                               [](unsigned char c) { return std::tolower(c); });
                lower[std::move(name)] = value;
              }
              exchange->Head(response.status_code(), std::move(lower));
              response.content_ready().then([exchange, fail](pplx::task<rest::http_response> body) {
                try {
                  body.get();
                  exchange->End({});
                } catch (const std::exception& e) {
                  fail(e);
                }
              });
            } catch (const std::exception& e) {
              fail(e);
            }
          });
    } catch (const std::exception& e) {
      return Failure(base::ErrorCode::kInvalidArgument,
                     request.method + " " + request.path + ": " + e.what());
    }
    return flight;
  }

  static base::Error Explain(const std::exception& e, const std::string& server,
                             const TlsContext* tls) {
    std::string message = server + ": " + e.what();
    if (message.find("rewind") != std::string::npos) {  // see ReadOnce
      message = server + ": the connection was closed before the answer";
    }
    if (tls != nullptr && message.find("handshake") != std::string::npos) {
      if (const auto why = tls->LastVerifyError(); !why.empty()) {
        message = server + ": the server's certificate is not trusted: " + why;
      }
    }
    return Failure(base::ErrorCode::kUnavailable, std::move(message));
  }

  const Config config_;
  const ServerAddress address_;
  Credentials credentials_;
  std::mutex mutex_;
  std::shared_ptr<Connection> connection_;  // guarded by mutex_
};

}  // namespace

base::Result<std::unique_ptr<Transport>> MakeTransport(const Config& config) {
  auto address = ParseServerAddress(config.server);
  if (!address.ok()) {
    return Failure(address.error().code, config.origin + ": server: " + address.error().message);
  }
  if (!config.proxy_url.empty() && config.proxy_url.rfind("http://", 0) != 0) {
    return Failure(base::ErrorCode::kInvalidArgument,
                   config.origin + ": proxy-url: " + config.proxy_url +
                       " is not supported, only http:// proxies are");
  }
  auto transport = std::make_unique<CpprestTransport>(config, std::move(*address));
  if (auto checked = transport->Check(); !checked.ok()) return checked.error();
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace kube
