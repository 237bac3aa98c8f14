#include "kube/tls_openssl.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <mutex>
#include <utility>
#include <vector>

namespace kube {
namespace {

template <class T, void (*Free)(T*)>
struct Deleter {
  void operator()(T* p) const { Free(p); }
};
void FreeBio(BIO* bio) { BIO_free_all(bio); }
using Bio = std::unique_ptr<BIO, Deleter<BIO, FreeBio>>;
using Certificate = std::unique_ptr<X509, Deleter<X509, X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY, EVP_PKEY_free>>;
using Store = std::unique_ptr<X509_STORE, Deleter<X509_STORE, X509_STORE_free>>;

Bio ReadOnly(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::vector<Certificate> ParseCertificates(const std::string& pem) {
  std::vector<Certificate> certificates;
  Bio bio = ReadOnly(pem);
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    certificates.emplace_back(certificate);
  }
  ERR_clear_error();  // the end of the text is reported as an error
  return certificates;
}

// Never asks a terminal for the passphrase of an encrypted key.
int NoPassphrase(char*, int, int, void*) { return 0; }

bool IsIpAddress(const std::string& host) {
  unsigned char buffer[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), buffer) == 1 ||
         inet_pton(AF_INET6, host.c_str(), buffer) == 1;
}

// Where a connection keeps its socket and a context its State; the usual place for such things (app
// data) is boost's, which frees what it finds there.
int ContextIndex() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}
int SocketIndex() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

base::Error Invalid(std::string message) {
  return {base::ErrorCode::kInvalidArgument, std::move(message), {}};
}

}  // namespace

struct TlsContext::State {
  Store trusted;  // null: the system's
  std::vector<Certificate> client_chain;
  PrivateKey client_key;
  std::string server_name;
  bool is_ip = false;
  bool insecure = false;
  OnConnected on_connected = nullptr;
  mutable std::mutex mutex;
  std::string last_error;  // guarded by mutex

  // Replaces OpenSSL's own verification, so that the name is checked by OpenSSL (cpprestsdk's check
  // does not know tls-server-name) and the reason of a refusal is kept.
  static int Verify(X509_STORE_CTX* chain, void* self) {
    return static_cast<State*>(self)->Verify(chain);
  }
  int Verify(X509_STORE_CTX* chain) {
    X509_STORE_CTX_set_verify_cb(chain, [](int ok, X509_STORE_CTX*) { return ok; });
    X509_VERIFY_PARAM* rules = X509_STORE_CTX_get0_param(chain);
    X509_VERIFY_PARAM_set_hostflags(
        rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    const int named =
        is_ip ? X509_VERIFY_PARAM_set1_ip_asc(rules, server_name.c_str())
              : X509_VERIFY_PARAM_set1_host(rules, server_name.data(), server_name.size());
    const int ok = named == 1 ? X509_verify_cert(chain) : 0;
    std::lock_guard lock(mutex);
    last_error.clear();
    if (ok == 1) return 1;
    const int code = X509_STORE_CTX_get_error(chain);
    last_error = X509_verify_cert_error_string(code);
    if (code == X509_V_ERR_HOSTNAME_MISMATCH || code == X509_V_ERR_IP_ADDRESS_MISMATCH) {
      last_error += " (the certificate is not for " + server_name + ")";
    }
    return 0;
  }

  // Server name indication is set when the handshake begins, since with a proxy there is no TLS
  // connection yet when cpprestsdk shows its handle. RFC 6066: names only, no addresses.
  static void OnHandshake(const SSL* ssl, int where, int) {
    if (where != SSL_CB_HANDSHAKE_START) return;
    SSL* connection = const_cast<SSL*>(ssl);  // OpenSSL offers no other way in
    // A ticket that comes later counts as a handshake, too.
    if (SSL_is_init_finished(connection)) return;
    const auto* self =
        static_cast<State*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(connection), ContextIndex()));
    if (!self->is_ip) SSL_set_tlsext_host_name(connection, self->server_name.c_str());
    void* socket = SSL_get_ex_data(connection, SocketIndex());
    if (socket != nullptr && self->on_connected != nullptr) self->on_connected(socket);
  }
};

TlsContext::TlsContext(std::unique_ptr<State> state) : state_(std::move(state)) {}
TlsContext::~TlsContext() = default;

base::Result<std::shared_ptr<TlsContext>> TlsContext::Parse(const TlsMaterial& material,
                                                            const std::string& server_name,
                                                            bool insecure) {
  auto state = std::make_unique<State>();
  state->server_name = server_name;
  state->is_ip = IsIpAddress(server_name);
  state->insecure = insecure;
  if (!material.ca.empty()) {
    const auto certificates = ParseCertificates(material.ca);
    if (certificates.empty()) return Invalid("the CA holds no certificate in PEM form");
    state->trusted.reset(X509_STORE_new());
    for (const auto& certificate : certificates) {
      X509_STORE_add_cert(state->trusted.get(), certificate.get());
    }
  }
  if (material.client_cert.empty() != material.client_key.empty()) {
    return Invalid("a client certificate and its key are needed, only one of them is given");
  }
  if (!material.client_cert.empty()) {
    state->client_chain = ParseCertificates(material.client_cert);
    if (state->client_chain.empty()) {
      return Invalid("the client certificate holds no certificate in PEM form");
    }
    Bio bio = ReadOnly(material.client_key);
    state->client_key.reset(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr));
    if (!state->client_key) {
      ERR_clear_error();
      return Invalid("the client key is no unencrypted private key in PEM form");
    }
    if (X509_check_private_key(state->client_chain.front().get(), state->client_key.get()) != 1) {
      ERR_clear_error();
      return Invalid("the client key does not belong to the client certificate");
    }
  }
  return std::shared_ptr<TlsContext>(new TlsContext(std::move(state)));
}

void TlsContext::Attach(ssl_st* connection, void* socket) {
  SSL_set_ex_data(connection, SocketIndex(), socket);
}

bool TlsContext::Apply(ssl_ctx_st* context, OnConnected on_connected) {
  state_->on_connected = on_connected;
  bool ok = SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1;
  SSL_CTX_set_ex_data(context, ContextIndex(), state_.get());
  SSL_CTX_set_info_callback(context, &State::OnHandshake);
  if (state_->trusted) {
    X509_STORE_up_ref(state_->trusted.get());
    SSL_CTX_set_cert_store(context, state_->trusted.get());  // takes that reference
  }
  if (!state_->insecure) SSL_CTX_set_cert_verify_callback(context, &State::Verify, state_.get());
  if (!state_->client_chain.empty()) {
    ok = ok && SSL_CTX_use_certificate(context, state_->client_chain.front().get()) == 1;
    for (size_t i = 1; i < state_->client_chain.size(); ++i) {
      ok = ok && SSL_CTX_add1_chain_cert(context, state_->client_chain[i].get()) == 1;
    }
    ok = ok && SSL_CTX_use_PrivateKey(context, state_->client_key.get()) == 1;
  }
  return ok;
}

std::string TlsContext::LastVerifyError() const {
  std::lock_guard lock(state_->mutex);
  return state_->last_error;
}

}  // namespace kube
