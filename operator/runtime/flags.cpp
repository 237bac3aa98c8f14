#include "runtime/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

namespace runtime {
namespace {

std::size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string ClosestFlag(const CLI::App& app, std::string wrong) {
  wrong = wrong.substr(0, wrong.find('='));
  wrong.erase(0, wrong.find_first_not_of('-'));
  std::string best;
  std::size_t least = 0;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      std::size_t distance = EditDistance(wrong, name);
      if (!wrong.empty() && name.starts_with(wrong)) distance = 1;
      if (best.empty() || distance < least) {
        best = name;
        least = distance;
      }
    }
  }
  return best;
}

// "300", "300s", "5m", "1h": seconds.
std::optional<std::chrono::seconds> ParseSeconds(const std::string& text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || value < 0 || value > 100000000) return std::nullopt;
  const std::string unit(rest, end);
  if (unit.empty() || unit == "s") return std::chrono::seconds(value);
  if (unit == "m") return std::chrono::minutes(value);
  if (unit == "h") return std::chrono::hours(value);
  return std::nullopt;
}

void Describe(CLI::App& app, Flags& flags, std::string& timeout) {
  app.option_defaults()->always_capture_default();
  app.add_option("--kubeconfig", flags.kubeconfig,
                 "Kubeconfig file (default: $KUBECONFIG, ~/.kube/config, in-cluster)")
      ->type_name("FILE");
  app.add_option("--context", flags.context, "Context of the kubeconfig (default: its current one)")
      ->type_name("NAME");
  app.add_option("--namespace", flags.namespaces,
                 "Namespace to serve; repeatable (default: $KUBEFLOW_NAMESPACE, else all)")
      ->type_name("NAME")
      ->allow_extra_args(false)
      ->take_all();
  app.add_option("--controller-threads", flags.controller_threads, "Jobs worked on at a time")
      ->check(CLI::Range(1, 256))
      ->type_name("N");
  app.add_flag("--leader-elect", flags.leader_elect,
               "Elect one leader among the operators of this cluster");
  app.add_option("--leader-elect-namespace", flags.leader_elect_namespace,
                 "Namespace of the Lease (default: the operator's own)")
      ->type_name("NAME");
  app.add_option("--client-qps", flags.client_qps, "Requests a second, 0 = no limit")
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("N");
  app.add_option("--max-in-flight", flags.max_in_flight, "Requests in flight")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  app.add_option("--metrics-bind-address", flags.metrics_address,
                 "Where /metrics is served, 0 = nowhere")
      ->type_name("ADDR");
  app.add_option("--health-probe-bind-address", flags.health_address,
                 "Where /healthz and /readyz are served, 0 = nowhere")
      ->type_name("ADDR");
  app.add_option("--gang-scheduler-name", flags.gang_scheduler,
                 "Gang scheduler for all jobs: volcano or scheduler-plugins (default: none)")
      ->type_name("NAME");
  app.add_option("--init-container-image", flags.init_container_image,
                 "Image with sh and nslookup for an init container that waits for the master, for "
                 "PyTorch before 1.10 (default: no init container)")
      ->type_name("IMAGE");
  app.add_flag("--service-per-replica", flags.service_per_replica,
               "A Service for every replica, not for the rendezvous host only");
  app.add_option("--stuck-pod-timeout", timeout,
                 "How long after its grace period a terminating pod on a dead node is replaced, "
                 "0 = never")
      ->type_name("SECONDS");
  app.add_option("--log-level", flags.log_level, "debug, info, warn or error")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}))
      ->type_name("LEVEL");
  app.add_option("--log-format", flags.log_format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->type_name("FORMAT");
}

EarlyExit Wrong(const std::string& message) {
  return {2, "pytorch-operator: " + message + "\nSee pytorch-operator --help.\n"};
}

}  // namespace

std::variant<Flags, EarlyExit> ParseFlags(int argc, const char* const* argv,
                                          const std::string& version,
                                          const std::string& default_namespace) {
  CLI::App app("Runs PyTorchJobs (kubeflow.org/v1) on Kubernetes.", "pytorch-operator");
  Flags flags;
  std::string timeout = "300s";
  Describe(app, flags, timeout);
  bool print_version = false;
  app.add_flag("--version", print_version, "Print the version and exit");
  app.allow_extras();
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return EarlyExit{0, app.help()};
  } catch (const CLI::ParseError& e) {
    return Wrong(e.what());
  }
  if (print_version) return EarlyExit{0, "pytorch-operator " + version + "\n"};
  for (const std::string& extra : app.remaining()) {
    if (extra.starts_with("-")) {
      return Wrong("unknown flag " + extra + "; did you mean --" + ClosestFlag(app, extra) + "?");
    }
    return Wrong("unexpected argument " + extra + ": every flag begins with --");
  }
  const auto seconds = ParseSeconds(timeout);
  if (!seconds) {
    return Wrong("--stuck-pod-timeout: " + timeout + " is no time; write 300, 300s or 5m");
  }
  flags.stuck_pod_timeout = *seconds;
  if (flags.namespaces.empty() && !default_namespace.empty()) {
    flags.namespaces.push_back(default_namespace);
  }
  std::sort(flags.namespaces.begin(), flags.namespaces.end());
  flags.namespaces.erase(std::unique(flags.namespaces.begin(), flags.namespaces.end()),
                         flags.namespaces.end());
  return flags;
}

}  // namespace runtime
