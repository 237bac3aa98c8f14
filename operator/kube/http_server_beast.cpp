// Probes and metrics are served with Boost.Beast, which cpprestsdk brings along as a dependency,
// rather than with cpprestsdk's own listener: that one can't bind IPv6, does not tell the port that
// it was given, has no limit on the size of a header and never closes a connection on which nothing
// comes.

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cctype>
#include <chrono>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "kube/http.h"

namespace kube {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::seconds kPatience{
    15};  // for a request to come, and for an answer to be taken
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr size_t kMaxHeader = 16 << 10;
constexpr size_t kMaxBody = 64 << 10;  // bodies are read and ignored
constexpr size_t kMaxConnections = 128;

base::Error Failure(base::ErrorCode code, const std::string& address, const std::string& why) {
  return {code, "can't listen on \"" + address + "\": " + why, {}};
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return lower;
}

// One connection. Owned by the operation that it waits for, so it goes when none is left.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Tcp::socket socket, const Handler& handler, size_t& open)
      : stream_(std::move(socket)), handler_(handler), open_(open) {
    ++open_;
  }
  ~Session() { --open_; }

  void Read() {
    parser_.emplace();
    parser_->header_limit(kMaxHeader);
    parser_->body_limit(kMaxBody);
    stream_.expires_after(kPatience);
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](error_code error, size_t) {
                       if (!error) {
                         self->Answer();
                       } else if (self->parser_->got_some() && error != beast::error::timeout &&
                                  error != asio::error::operation_aborted &&
                                  error != http::error::end_of_stream) {
                         self->Write({400, "text/plain; charset=utf-8", "bad request\n"}, false);
                       }
                     });
  }

 private:
  void Answer() {
    const auto& message = parser_->get();
    ServedRequest request;
    request.method = std::string(message.method_string());
    const std::string target(message.target());
    request.path = target.substr(0, target.find('?'));
    for (const auto& field : message) {
      request.headers[Lower(std::string_view(
          field.name_string().data(), field.name_string().size()))] = std::string(field.value());
    }
    ServedResponse response;
    try {
      response = handler_(request);
    } catch (const std::exception& e) {
      response = {500, "text/plain; charset=utf-8", std::string(e.what()) + "\n"};
    }
    Write(std::move(response), message.keep_alive());
  }

  void Write(ServedResponse response, bool keep_alive) {
    answer_ = {};
    answer_.version(11);
    answer_.result(static_cast<unsigned>(response.status));
    answer_.set(http::field::content_type, response.content_type);
    answer_.keep_alive(keep_alive);
    answer_.content_length(response.body.size());
    if (parser_->get().method() != http::verb::head) answer_.body() = std::move(response.body);
    stream_.expires_after(kPatience);
    http::async_write(stream_, answer_, [self = shared_from_this()](error_code error, size_t) {
      if (!error && self->answer_.keep_alive()) {
        self->Read();
      } else {
        error_code ignored;
        self->stream_.socket().shutdown(Tcp::socket::shutdown_send, ignored);
      }
    });
  }

  beast::tcp_stream stream_;
  const Handler& handler_;
  size_t& open_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> answer_;
};

class BeastServer : public Server {
 public:
  explicit BeastServer(Handler handler)
      : handler_(std::move(handler)), acceptor_(context_), pause_(context_) {}
  ~BeastServer() override { context_.stop(); }

  error_code Listen(const Tcp::endpoint& endpoint) {
    error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (error) return error;
    if (endpoint.protocol() == Tcp::v6()) acceptor_.set_option(asio::ip::v6_only(false), error);
    acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (!error) port_ = acceptor_.local_endpoint(error).port();
    if (error) {
      error_code ignored;
      acceptor_.close(ignored);
    }
    return error;
  }

  void Start() {
    Accept();
    thread_ = std::jthread([this] { context_.run(); });
  }

  int port() const override { return port_; }

 private:
  void Accept() {
    acceptor_.async_accept([this](error_code error, Tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (error) {  // such as no file descriptor left: it lasts, so not again at once
        pause_.expires_after(kAcceptPause);
        pause_.async_wait([this](error_code stopped) {
          if (!stopped) Accept();
        });
        return;
      }
      if (open_ < kMaxConnections) {
        std::make_shared<Session>(std::move(socket), handler_, open_)->Read();
      }
      Accept();
    });
  }

  const Handler handler_;
  size_t open_ = 0;  // sessions; used by thread_ only, and by ~io_context after it has ended
  asio::io_context context_{1};
  Tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  int port_ = 0;
  std::jthread thread_;
};

}  // namespace

base::Result<std::unique_ptr<Server>> Serve(const std::string& address, Handler handler) {
  const auto colon = address.rfind(':');
  const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
  if (port.empty() || port.size() > 5 ||
      port.find_first_not_of("0123456789") != std::string::npos || std::stoi(port) > 65535) {
    return Failure(base::ErrorCode::kInvalidArgument, address,
                   "expected host:port or :port, with a port from 0 to 65535");
  }
  std::string host = address.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  const auto number = static_cast<unsigned short>(std::stoi(port));
  auto server = std::make_unique<BeastServer>(std::move(handler));
  error_code error;
  if (host.empty()) {
    error = server->Listen({Tcp::v6(), number});
    if (error && error != asio::error::address_in_use && error != asio::error::access_denied) {
      error = server->Listen({Tcp::v4(), number});  // a host without IPv6
    }
  } else {
    asio::io_context context;
    Tcp::resolver resolver(context);
    const auto found = resolver.resolve(host, port, Tcp::resolver::passive, error);
    if (error || found.empty()) {
      return Failure(base::ErrorCode::kInvalidArgument, address,
                     "unknown host " + host + ": " + error.message());
    }
    error = server->Listen(found.begin()->endpoint());
  }
  if (error) return Failure(base::ErrorCode::kUnavailable, address, error.message());
  server->Start();
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace kube
