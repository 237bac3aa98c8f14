// pytorch-operator: flags, wiring, signals, exit codes. 0: asked to end; 1: it cannot begin; 2: a
// wrong flag.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "kube/client.h"
#include "kube/config.h"
#include "kube/lease.h"
#include "runtime/controller.h"
#include "runtime/event_recorder.h"
#include "runtime/flags.h"
#include "runtime/kube_api.h"
#include "runtime/log.h"
#include "runtime/metrics.h"
#include "runtime/probes.h"
#include "runtime/watches.h"

namespace {

using namespace std::chrono_literals;

// SIGTERM to exit: by then writes in flight are cut off …
constexpr auto kCutOff = 2500ms;
// … and by then the process ends whatever still hangs.
constexpr auto kDeadline = 4500ms;
constexpr auto kTick = 50ms;  // of the main thread: signals, leadership, caches

core::TimePoint Now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

// Unique for each process, readable in `kubectl get lease`.
std::string Identity() {
  char host[256] = "operator";
  gethostname(host, sizeof host - 1);
  std::string uuid = std::to_string(getpid());
  if (std::ifstream random("/proc/sys/kernel/random/uuid"); random) random >> uuid;
  return std::string(host) + "_" + uuid;
}

bool Managed(const core::Job& job) {
  const auto& manager = job.spec.run_policy.managed_by;
  return !manager || *manager == "kubeflow.org/training-operator";
}

// The signals that end the process are taken by the main thread alone.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return signals;
}

// Waits a tick; true when the process is asked to end.
bool Asked(const sigset_t& signals) {
  const timespec tick{0, std::chrono::nanoseconds(kTick).count()};
  return sigtimedwait(&signals, nullptr, &tick) > 0;
}

// One more operator for this cluster: everything between the connection and the end.
class Process {
 public:
  Process(const runtime::Flags& flags, const std::string& own_namespace, kube::Transport& transport,
          std::shared_ptr<spdlog::logger> log)
      : flags_(flags),
        log_(std::move(log)),
        metrics_(OPERATOR_VERSION),
        client_(transport, Limits(flags), OnRequest()),
        lease_client_(transport, LeaseLimits(), OnRequest()),
        election_(lease_client_, Lease(flags, own_namespace),
                  [this](bool leading) { Leading(leading); }),
        api_(client_, flags.gang_scheduler,
             [this] { return !flags_.leader_elect || election_.MayWrite(); }),
        queue_(Now, {}, &metrics_),
        cache_(Now) {}

  // Returns the exit code.
  int Run(const sigset_t& signals) {
    auto servers = runtime::ServeProbes(
        flags_.health_address, flags_.metrics_address,
        {[this] { return WhyNotReady(); }, [this] { return metrics_.Render(); }});
    if (!servers) {
      log_->error("{}", servers.error().message);
      return 1;
    }
    events_.emplace(api_, Now, [this] { metrics_.EventDropped(); });
    runtime::ControllerOptions options;
    options.decide.init_container_image = flags_.init_container_image;
    options.decide.service_per_replica = flags_.service_per_replica;
    options.decide.gang_scheduler = flags_.gang_scheduler;
    options.decide.stuck_pod_timeout = flags_.stuck_pod_timeout;
    options.threads = flags_.controller_threads;
    options.max_in_flight = flags_.max_in_flight;
    controller_.emplace(options, api_, cache_, queue_, *events_, metrics_, Now, log_);
    cache_.OnJobGone([this](const core::Job& job) {
      if (controller_->running() && Managed(job)) metrics_.JobDeleted(job.key.ns);
    });
    watches_.emplace(client_, flags_.namespaces, flags_.gang_scheduler, cache_, queue_, log_);
    if (flags_.leader_elect) {
      election_thread_ = std::jthread([this](std::stop_token stop) { election_.Run(stop); });
    }
    while (!Asked(signals)) Steer();
    Shutdown();
    return 0;
  }

 private:
  static kube::ClientOptions Limits(const runtime::Flags& flags) {
    kube::ClientOptions options;
    options.qps = flags.client_qps;
    options.max_in_flight = flags.max_in_flight;
    return options;
  }
  static kube::ClientOptions LeaseLimits() {
    kube::ClientOptions options;
    options.timeout = 2s;
    options.write_timeout = 2s;
    options.retries = 0;
    return options;
  }
  static kube::LeaseOptions Lease(const runtime::Flags& flags, const std::string& own_namespace) {
    kube::LeaseOptions options;
    options.ns =
        flags.leader_elect_namespace.empty() ? own_namespace : flags.leader_elect_namespace;
    options.name = "pytorch-operator";
    options.identity = Identity();
    return options;
  }
  kube::OnRequest OnRequest() {
    return [this](std::string_view method, int status, double seconds) {
      metrics_.Request(method, status, seconds);
    };
  }

  std::string WhyNotReady() const { return watches_ready_ ? watches_->Why() : "starting"; }

  void Leading(bool leading) {
    metrics_.Leading(leading);
    leading_ = leading;
    if (leading) {
      log_->info("this process leads");
    } else {
      log_->warn("this process does not lead any more; {}", election_.LastError());
    }
  }

  // Decisions are made while the caches are whole and this process leads.
  void Steer() {
    watches_ready_ = true;
    const bool wanted = watches_->Synced() && (!flags_.leader_elect || leading_);
    if (wanted == controller_->running()) return;
    if (wanted) {
      log_->info("serving {}", flags_.namespaces.empty() ? "all namespaces" : Namespaces());
      controller_->Start();
    } else {
      controller_->Stop();
    }
  }

  std::string Namespaces() const {
    std::string all;
    for (const std::string& ns : flags_.namespaces) all += (all.empty() ? "" : ", ") + ns;
    return all;
  }

  void Shutdown() {
    log_->info("ending: no new pass begins, writes in flight finish");
    std::jthread deadline([this](std::stop_token done) {
      const auto begin = std::chrono::steady_clock::now();
      bool cut = false;
      while (!done.stop_requested()) {
        const auto passed = std::chrono::steady_clock::now() - begin;
        if (passed > kDeadline) {
          log_->warn("something still hangs; ending without it");
          std::_Exit(0);
        }
        if (passed > kCutOff && !cut) {
          client_.Cancel();
          cut = true;
        }
        std::this_thread::sleep_for(10ms);
      }
    });
    controller_->Stop();
    events_.reset();
    if (election_thread_.joinable()) {
      election_thread_.request_stop();  // releases the lease: all writers have ended
      election_thread_.join();
    }
    client_.Cancel();
    watches_->Stop();
    log_->info("ended");
  }

  const runtime::Flags& flags_;
  const std::shared_ptr<spdlog::logger> log_;
  runtime::Metrics metrics_;
  kube::Client client_;
  kube::Client lease_client_;
  kube::LeaderElection election_;
  runtime::KubeApi api_;
  runtime::WorkQueue queue_;
  runtime::Cache cache_;
  std::atomic<bool> leading_{false};
  std::atomic<bool> watches_ready_{false};
  std::optional<runtime::EventRecorder> events_;
  std::optional<runtime::Controller> controller_;
  std::optional<runtime::Watches> watches_;
  std::jthread election_thread_;
};

}  // namespace

int main(int argc, char** argv) {
  const char* env = std::getenv("KUBEFLOW_NAMESPACE");
  auto parsed = runtime::ParseFlags(argc, argv, OPERATOR_VERSION, env ? env : "");
  if (const auto* early = std::get_if<runtime::EarlyExit>(&parsed)) {
    std::fputs(early->text.c_str(), early->code == 0 ? stdout : stderr);
    return early->code;
  }
  const runtime::Flags flags = std::get<runtime::Flags>(std::move(parsed));
  const sigset_t signals = BlockSignals();
  auto log = runtime::MakeLog(flags.log_level, flags.log_format);
  auto config = kube::LoadConfig({flags.kubeconfig, flags.context});
  if (!config) {
    log->error("{}", config.error().message);
    return 1;
  }
  auto transport = kube::MakeTransport(*config);
  if (!transport) {
    log->error("{}", transport.error().message);
    return 1;
  }
  log->info("pytorch-operator {} at {} (from {})", OPERATOR_VERSION, config->server,
            config->origin);
  Process process(flags, config->default_namespace, **transport, log);
  const int code = process.Run(signals);
  log->flush();
  // Not through exit: threads of the HTTP library may still be inside OpenSSL, whose own exit handler
  // would free what they use.
  std::_Exit(code);
}
