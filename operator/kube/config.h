#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kube/http.h"

namespace kube {

struct ConfigOptions {
  std::string kubeconfig;  // --kubeconfig; "" = $KUBECONFIG (a list), ~/.kube/config, in-cluster
  std::string context;     // --context; "" = current-context
};

// A credential plugin: a program that prints an ExecCredential (client.authentication.k8s.io).
// It is started with this argument vector, never by a shell.
struct ExecPlugin {
  std::string command;  // with a slash: a path, else looked up in PATH
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;  // added to our own environment
  std::string api_version;
  bool provide_cluster_info = false;
  std::string install_hint;
};

// Where the API server is and who we are, read from files that may be rotated later.
struct Config {
  std::string server;  // https://host:port
  std::string tls_server_name;
  bool insecure_skip_tls_verify = false;
  std::string ca_file, ca_data;  // PEM; data wins
  std::string client_cert_file, client_cert_data;
  std::string client_key_file, client_key_data;
  std::string token, token_file;  // the file wins while it can be read
  std::optional<ExecPlugin> exec;
  std::string default_namespace = "default";
  std::string proxy_url;
  std::string origin;  // for messages: the file or "in-cluster"
};

// Errors name the file and the field: kInvalidArgument.
base::Result<Config> LoadConfig(const ConfigOptions& options);

// Verifies the server against the config's CA only, never the system's. Re-reads token, CA and
// certificate files when they change.
base::Result<std::unique_ptr<Transport>> MakeTransport(const Config& config);

}  // namespace kube
