#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kube/http.h"

namespace runtime {

// What the process tells about itself over HTTP: /healthz (it lives), /readyz (its caches are
// synced; else 503 with the reason), /metrics.
struct ProbeSources {
  std::function<std::string()> why_not_ready;  // "" = ready; thread-safe
  std::function<std::string()> metrics;        // Prometheus text; thread-safe
};

kube::Handler HealthHandler(ProbeSources sources);
kube::Handler MetricsHandler(ProbeSources sources);

// Serves both; one server when the addresses are the same, none for "0" or "". Errors name the
// flag.
base::Result<std::vector<std::unique_ptr<kube::Server>>> ServeProbes(
    const std::string& health_address, const std::string& metrics_address, ProbeSources sources);

}  // namespace runtime
