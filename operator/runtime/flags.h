#pragma once

#include <chrono>
#include <string>
#include <variant>
#include <vector>

namespace runtime {

// The command line; behaviour.md section 7.
struct Flags {
  std::string kubeconfig;
  std::string context;
  std::vector<std::string> namespaces;  // empty = all
  int controller_threads = 4;
  bool leader_elect = false;
  std::string leader_elect_namespace;  // "" = the operator's own
  double client_qps = 0;
  int max_in_flight = 64;
  std::string metrics_address = ":8080";
  std::string health_address = ":8081";
  std::string gang_scheduler;
  std::string init_container_image;
  bool service_per_replica = false;
  std::chrono::seconds stuck_pod_timeout{300};
  std::string log_level = "info";
  std::string log_format = "text";
};

// Nothing to run: print `text` (to stdout when `code` is 0, else to stderr) and exit with `code`.
struct EarlyExit {
  int code = 0;
  std::string text;
};

// `default_namespace`: the value of $KUBEFLOW_NAMESPACE, "" when it is not set. A wrong flag gives
// code 2 and a message that names the closest right one.
std::variant<Flags, EarlyExit> ParseFlags(int argc, const char* const* argv,
                                          const std::string& version,
                                          const std::string& default_namespace);

}  // namespace runtime
