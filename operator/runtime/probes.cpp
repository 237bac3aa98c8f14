#include "runtime/probes.h"

#include <utility>

namespace runtime {
namespace {

constexpr char kTextFormat[] = "text/plain; version=0.0.4; charset=utf-8";

kube::ServedResponse NotFound() {
  return {404, "text/plain; charset=utf-8", "404 page not found\n"};
}

bool Off(const std::string& address) { return address.empty() || address == "0"; }

}  // namespace

kube::Handler HealthHandler(ProbeSources sources) {
  return [sources = std::move(sources)](const kube::ServedRequest& request) {
    kube::ServedResponse response;
    response.body = "ok";
    if (request.path == "/healthz") return response;
    if (request.path != "/readyz") return NotFound();
    if (std::string why = sources.why_not_ready(); !why.empty()) {
      response.status = 503;
      response.body = why + "\n";
    }
    return response;
  };
}

kube::Handler MetricsHandler(ProbeSources sources) {
  return [sources = std::move(sources)](const kube::ServedRequest& request) {
    if (request.path != "/metrics") return NotFound();
    return kube::ServedResponse{200, kTextFormat, sources.metrics()};
  };
}

base::Result<std::vector<std::unique_ptr<kube::Server>>> ServeProbes(
    const std::string& health_address, const std::string& metrics_address, ProbeSources sources) {
  std::vector<std::unique_ptr<kube::Server>> servers;
  kube::Handler health = HealthHandler(sources), metrics = MetricsHandler(sources);
  if (!Off(health_address) && health_address == metrics_address) {
    health = [health, metrics](const kube::ServedRequest& request) {
      return request.path == "/metrics" ? metrics(request) : health(request);
    };
  }
  auto serve = [&](const char* flag, const std::string& address,
                   kube::Handler handler) -> base::Result<void> {
    auto server = kube::Serve(address, std::move(handler));
    if (!server) {
      base::Error error = server.error();
      error.message = std::string(flag) + "=" + address + ": " + error.message;
      return error;
    }
    servers.push_back(std::move(server).value());
    return {};
  };
  if (!Off(health_address)) {
    auto served = serve("--health-probe-bind-address", health_address, std::move(health));
    if (!served) return served.error();
  }
  if (!Off(metrics_address) && metrics_address != health_address) {
    auto served = serve("--metrics-bind-address", metrics_address, std::move(metrics));
    if (!served) return served.error();
  }
  return servers;
}

}  // namespace runtime
