#include "kube/config.h"

#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "kube/base64.h"

namespace kube {
namespace {

namespace fs = std::filesystem;

constexpr const char* kServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount";

base::Error Invalid(std::string message) {
  return {base::ErrorCode::kInvalidArgument, std::move(message), {}};
}

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

struct File {
  std::string path;
  YAML::Node root;
};

// A named entry of a list (clusters, users, contexts) and the file that it is in.
struct Entry {
  YAML::Node body;
  std::string file;
  std::string field;  // for messages: "users[2].user"
};

// Reads fields of one entry and keeps the first error.
class Reader {
 public:
  explicit Reader(const Entry& entry) : entry_(entry) {}

  std::string Text(const char* name) {
    const YAML::Node node = Field(name);
    if (!node || node.IsNull()) return "";
    if (!node.IsScalar()) return Fail(name, "must be a string");
    return node.Scalar();
  }
  // A path, relative ones being relative to the file's folder.
  std::string Path(const char* name) {
    const std::string text = Text(name);
    if (text.empty() || fs::path(text).is_absolute()) return text;
    return (fs::absolute(entry_.file).parent_path() / text).lexically_normal().string();
  }
  std::string Data(const char* name) {
    const auto decoded = DecodeBase64(Text(name));
    return decoded ? *decoded : Fail(name, "is not valid base64");
  }
  bool Flag(const char* name) {
    const std::string text = Text(name);
    if (!text.empty() && text != "true" && text != "false") Fail(name, "must be true or false");
    return text == "true";
  }
  YAML::Node Field(const char* name) {
    if (!entry_.body.IsMap()) {
      if (error_.empty()) error_ = entry_.file + ": " + entry_.field + ": must be a map";
      return YAML::Node(YAML::NodeType::Undefined);
    }
    return entry_.body[name];
  }
  std::string Fail(const std::string& name, const std::string& why) {
    if (error_.empty()) error_ = entry_.file + ": " + entry_.field + "." + name + ": " + why;
    return "";
  }
  const std::string& error() const { return error_; }

 private:
  const Entry& entry_;
  std::string error_;
};

// A list of several files: files that do not exist are passed over if `may_miss`.
base::Result<std::vector<File>> ReadFiles(const std::vector<std::string>& paths, bool may_miss) {
  std::vector<File> files;
  for (const auto& path : paths) {
    std::error_code ignored;
    if (may_miss && !fs::exists(path, ignored)) continue;
    std::ifstream in(path, std::ios::binary);
    if (!in || fs::is_directory(path, ignored))
      return Invalid("kubeconfig " + path + ": can't read it");
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    try {
      YAML::Node root = YAML::Load(text);
      if (root.IsNull()) continue;
      if (!root.IsMap()) return Invalid("kubeconfig " + path + ": must be a map");
      files.push_back({path, std::move(root)});
    } catch (const YAML::Exception& e) {
      return Invalid("kubeconfig " + path + ": is not valid YAML: " + e.what());
    }
  }
  return files;
}

// As kubectl merges: the first file that has an entry of this name gives all of it.
base::Result<Entry> Find(const std::vector<File>& files, const std::string& list,
                         const std::string& kind, const std::string& name) {
  for (const auto& file : files) {
    const YAML::Node entries = file.root[list];
    if (!entries || entries.IsNull()) continue;
    if (!entries.IsSequence()) return Invalid(file.path + ": " + list + ": must be a list");
    for (size_t i = 0; i < entries.size(); ++i) {
      const YAML::Node entry = entries[i];
      const std::string field = list + "[" + std::to_string(i) + "]";
      if (!entry.IsMap()) return Invalid(file.path + ": " + field + ": must be a map");
      if (!entry["name"] || !entry["name"].IsScalar() || entry["name"].Scalar() != name) continue;
      return Entry{entry[kind] ? entry[kind] : YAML::Node(YAML::NodeType::Null), file.path,
                   field + "." + kind};
    }
  }
  std::string where;
  for (const auto& file : files) where += (where.empty() ? "" : ", ") + file.path;
  return Invalid(where + ": " + list + ": there is no " + kind + " named \"" + name + "\"");
}

void ReadCluster(Reader& reader, Config& config) {
  config.server = reader.Text("server");
  if (config.server.empty()) reader.Fail("server", "is missing");
  config.tls_server_name = reader.Text("tls-server-name");
  config.insecure_skip_tls_verify = reader.Flag("insecure-skip-tls-verify");
  config.ca_file = reader.Path("certificate-authority");
  config.ca_data = reader.Data("certificate-authority-data");
  config.proxy_url = reader.Text("proxy-url");
  if (config.insecure_skip_tls_verify && !(config.ca_file.empty() && config.ca_data.empty())) {
    reader.Fail("insecure-skip-tls-verify", "can't be used together with a certificate authority");
  }
}

std::optional<ExecPlugin> ReadExec(Reader& reader, const std::string& file) {
  const YAML::Node node = reader.Field("exec");
  if (!node || node.IsNull()) return std::nullopt;
  const Entry entry{node, file, "exec"};
  Reader exec(entry);
  ExecPlugin plugin;
  plugin.command = exec.Text("command");
  if (plugin.command.empty()) exec.Fail("command", "is missing");
  // A name without a slash is looked up in PATH, anything else is a path.
  if (plugin.command.find('/') != std::string::npos) plugin.command = exec.Path("command");
  plugin.api_version = exec.Text("apiVersion");
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    exec.Fail("apiVersion", "must be client.authentication.k8s.io/v1 or v1beta1");
  }
  if (exec.Text("interactiveMode") == "Always") {
    exec.Fail("interactiveMode", "is Always, but there is no terminal here");
  }
  plugin.provide_cluster_info = exec.Flag("provideClusterInfo");
  plugin.install_hint = exec.Text("installHint");
  if (const YAML::Node args = exec.Field("args"); args && !args.IsNull()) {
    if (!args.IsSequence()) exec.Fail("args", "must be a list of strings");
    for (const auto& arg : args) {
      if (!arg.IsScalar()) exec.Fail("args", "must be a list of strings");
      plugin.args.push_back(arg.IsScalar() ? arg.Scalar() : "");
    }
  }
  if (const YAML::Node env = exec.Field("env"); env && !env.IsNull()) {
    if (!env.IsSequence()) exec.Fail("env", "must be a list of name and value");
    for (const auto& variable : env) {
      const Entry pair{variable, file, "exec.env[]"};
      Reader fields(pair);
      plugin.env.emplace_back(fields.Text("name"), fields.Text("value"));
      if (!fields.error().empty()) exec.Fail("env", "must be a list of name and value");
    }
  }
  if (!exec.error().empty()) reader.Fail("exec", exec.error());
  return plugin;
}

void ReadUser(Reader& reader, const std::string& file, Config& config) {
  config.client_cert_file = reader.Path("client-certificate");
  config.client_cert_data = reader.Data("client-certificate-data");
  config.client_key_file = reader.Path("client-key");
  config.client_key_data = reader.Data("client-key-data");
  config.token = reader.Text("token");
  config.token_file = reader.Path("tokenFile");
  config.exec = ReadExec(reader, file);
  // To ignore these would be to act as somebody else.
  for (const char* other : {"auth-provider", "username", "as", "as-groups", "as-uid"}) {
    if (const YAML::Node node = reader.Field(other); node && !node.IsNull()) {
      reader.Fail(other, "is not supported: use a token, a client certificate or an exec plugin");
    }
  }
}

base::Result<Config> FromFiles(const std::vector<File>& files, std::string context_name) {
  for (const auto& file : files) {
    if (!context_name.empty()) break;
    const YAML::Node current = file.root["current-context"];
    if (current && current.IsScalar()) context_name = current.Scalar();
  }
  if (context_name.empty()) {
    return Invalid(files.front().path + ": current-context: is not set; choose one with --context");
  }
  auto context = Find(files, "contexts", "context", context_name);
  if (!context.ok()) return context.error();
  Reader names(*context);
  const std::string cluster_name = names.Text("cluster");
  const std::string user_name = names.Text("user");
  Config config;
  if (const auto ns = names.Text("namespace"); !ns.empty()) config.default_namespace = ns;
  if (cluster_name.empty()) names.Fail("cluster", "is missing");
  if (!names.error().empty()) return Invalid(names.error());

  auto cluster = Find(files, "clusters", "cluster", cluster_name);
  if (!cluster.ok()) return cluster.error();
  Reader cluster_reader(*cluster);
  ReadCluster(cluster_reader, config);
  if (!cluster_reader.error().empty()) return Invalid(cluster_reader.error());
  if (!user_name.empty()) {
    auto user = Find(files, "users", "user", user_name);
    if (!user.ok()) return user.error();
    if (!user->body.IsNull()) {
      Reader user_reader(*user);
      ReadUser(user_reader, user->file, config);
      if (!user_reader.error().empty()) return Invalid(user_reader.error());
    }
  }
  config.origin = "kubeconfig " + cluster->file + ", context " + context_name;
  return config;
}

base::Result<Config> InCluster(const std::string& host, const std::string& port) {
  const fs::path folder(kServiceAccount);
  Config config;
  config.origin = "in-cluster";
  const bool ipv6 = host.find(':') != std::string::npos;
  config.server.append("https://").append(ipv6 ? "[" : "").append(host).append(ipv6 ? "]" : "");
  config.server.append(":").append(port.empty() ? "443" : port);
  config.ca_file = folder / "ca.crt";
  config.token_file = folder / "token";
  std::ifstream in(folder / "namespace");
  if (std::string ns; in >> ns) config.default_namespace = ns;
  return config;
}

}  // namespace

base::Result<Config> LoadConfig(const ConfigOptions& options) {
  std::vector<std::string> paths;
  bool may_miss = true;
  if (!options.kubeconfig.empty()) {
    paths.push_back(options.kubeconfig);
    may_miss = false;
  } else if (const std::string list = Environment("KUBECONFIG"); !list.empty()) {
    for (size_t begin = 0; begin <= list.size();) {
      const auto end = std::min(list.find(':', begin), list.size());
      if (end > begin) paths.push_back(list.substr(begin, end - begin));
      begin = end + 1;
    }
  } else if (const std::string home = Environment("HOME"); !home.empty()) {
    paths.push_back(home + "/.kube/config");
  }
  try {
    auto files = ReadFiles(paths, may_miss);
    if (!files.ok()) return files.error();
    if (!files->empty()) return FromFiles(*files, options.context);
  } catch (const YAML::Exception& e) {
    return Invalid("kubeconfig " + paths.front() + ": " + e.what());
  }
  if (!may_miss) return Invalid("kubeconfig " + options.kubeconfig + ": is empty");
  const std::string host = Environment("KUBERNETES_SERVICE_HOST");
  if (!host.empty()) return InCluster(host, Environment("KUBERNETES_SERVICE_PORT"));
  return Invalid(
      "no API server is known: there is no --kubeconfig, no file of $KUBECONFIG or ~/.kube/config "
      "exists, and this is not a pod of a cluster (KUBERNETES_SERVICE_HOST is not set)");
}

}  // namespace kube
