#include "kube/exec_plugin.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>
#include <vector>

extern char** environ;

namespace kube {
namespace {

using nlohmann::json;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kPluginTimeout{30};
constexpr size_t kMaxOutput = 1 << 20;

base::Error Refused(std::string message) {
  return {base::ErrorCode::kUnauthorized, std::move(message), {}};
}

// The input that the plugin protocol passes in KUBERNETES_EXEC_INFO.
std::string ExecInfo(const ExecPlugin& plugin, const Config& cluster) {
  json spec{{"interactive", false}};
  if (plugin.provide_cluster_info) {
    json& info = spec["cluster"];
    info["server"] = cluster.server;
    if (!cluster.tls_server_name.empty()) info["tls-server-name"] = cluster.tls_server_name;
    if (cluster.insecure_skip_tls_verify) info["insecure-skip-tls-verify"] = true;
    if (!cluster.proxy_url.empty()) info["proxy-url"] = cluster.proxy_url;
  }
  return json{{"kind", "ExecCredential"}, {"apiVersion", plugin.api_version}, {"spec", spec}}
      .dump();
}

std::vector<std::string> Environment(const ExecPlugin& plugin, const Config& cluster) {
  auto added = plugin.env;
  added.emplace_back("KUBERNETES_EXEC_INFO", ExecInfo(plugin, cluster));
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto replaced = std::any_of(added.begin(), added.end(), [&text](const auto& pair) {
      return text.rfind(pair.first + "=", 0) == 0;
    });
    if (!replaced) all.push_back(text);
  }
  for (const auto& [name, value] : added) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (auto& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// All that comes out of `fd` until it is closed; false when the time or the size is over.
bool ReadAll(int fd, steady_clock::time_point deadline, std::string& output) {
  std::array<char, 4096> block;
  while (output.size() < kMaxOutput) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now());
    pollfd waited{fd, POLLIN, 0};
    if (left.count() <= 0) return false;
    const int ready = poll(&waited, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    const ssize_t got = read(fd, block.data(), block.size());
    if (got == 0) return true;
    if (got < 0 && errno != EINTR) return false;
    if (got > 0) output.append(block.data(), static_cast<size_t>(got));
  }
  return false;
}

// "2026-01-31T12:00:00Z", with or without a fraction or an offset; nothing if it is not one.
std::optional<std::chrono::system_clock::time_point> ParseTime(const std::string& text) {
  std::tm parts{};
  int used = 0;
  if (std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%n", &parts.tm_year, &parts.tm_mon,
                  &parts.tm_mday, &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &used) != 6) {
    return std::nullopt;
  }
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  auto rest = text.substr(static_cast<size_t>(used));
  if (!rest.empty() && rest.front() == '.') {
    rest.erase(0, std::min(rest.find_first_not_of("0123456789", 1), rest.size()));
  }
  int hours = 0;
  int minutes = 0;
  char sign = '+';
  if (rest != "Z" && std::sscanf(rest.c_str(), "%c%2d:%2d", &sign, &hours, &minutes) != 3) {
    return std::nullopt;
  }
  const auto offset = std::chrono::hours(hours) + std::chrono::minutes(minutes);
  const auto time = std::chrono::system_clock::from_time_t(timegm(&parts));
  return sign == '-' ? time + offset : time - offset;
}

}  // namespace

base::Result<ExecCredential> ParseExecCredential(std::string_view text,
                                                 std::chrono::system_clock::time_point now) {
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("status") || !document["status"].is_object()) {
    return Refused("it did not print an ExecCredential with a status");
  }
  const json& status = document["status"];
  const auto field = [&status](const char* name) {
    const auto found = status.find(name);
    return found != status.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  ExecCredential credential{
      field("token"), field("clientCertificateData"), field("clientKeyData"), {}};
  if (credential.token.empty() && credential.client_cert.empty()) {
    return Refused("its ExecCredential has neither a token nor a client certificate");
  }
  if (credential.client_cert.empty() != credential.client_key.empty()) {
    return Refused("its ExecCredential has only one of clientCertificateData and clientKeyData");
  }
  if (const auto expires = field("expirationTimestamp"); !expires.empty()) {
    const auto time = ParseTime(expires);
    if (!time) return Refused("expirationTimestamp \"" + expires + "\" is no RFC 3339 time");
    credential.lifetime = std::chrono::duration_cast<std::chrono::milliseconds>(*time - now);
  }
  return credential;
}

base::Result<ExecCredential> RunExecPlugin(const ExecPlugin& plugin, const Config& cluster,
                                           std::chrono::system_clock::time_point now) {
  const std::string who = cluster.origin + ": exec: " + plugin.command + ": ";
  std::vector<std::string> arguments{plugin.command};
  arguments.insert(arguments.end(), plugin.args.begin(), plugin.args.end());
  std::vector<std::string> environment = Environment(plugin, cluster);

  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Refused(who + std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawnattr_t attributes;  // signals that our threads block are not blocked for the plugin
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t child = 0;
  const int spawned = posix_spawnp(&child, plugin.command.c_str(), &actions, &attributes,
                                   Pointers(arguments).data(), Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(ends[1]);
  if (spawned != 0) {
    close(ends[0]);
    return Refused(who + std::strerror(spawned) +
                   (plugin.install_hint.empty() ? "" : ". " + plugin.install_hint));
  }
  std::string output;
  const bool complete = ReadAll(ends[0], steady_clock::now() + kPluginTimeout, output);
  close(ends[0]);
  if (!complete) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!complete) return Refused(who + "it did not end within 30 s, or printed more than 1 MiB");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return Refused(who + "it failed with " +
                   (WIFEXITED(status) ? "exit code " + std::to_string(WEXITSTATUS(status))
                                      : "signal " + std::to_string(WTERMSIG(status))));
  }
  auto credential = ParseExecCredential(output, now);
  if (!credential.ok()) return Refused(who + credential.error().message);
  return credential;
}

}  // namespace kube
