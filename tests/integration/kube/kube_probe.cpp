// Drives operator/kube from the command line, one JSON object a line on standard output:
//   kube_probe [--kubeconfig=F] [--context=C] [--timeout-ms=N] COMMAND ...
//     get RESOURCE NS NAME | list RESOURCE NS [PAGE] | create RESOURCE NS BODY
//     patch RESOURCE NS NAME SUBRESOURCE BODY | delete RESOURCE NS NAME UID
//     loop RESOURCE NS NAME SECONDS    GET again and again, a line when the outcome changes
//     watch RESOURCE NS VERSION SILENCE_MS    one raw watch
//     reflect RESOURCE NS              until SIGTERM
//     lease NS NAME IDENTITY           campaigns until SIGTERM
//     serve ADDRESS                    until SIGTERM
// RESOURCE is "pods" or "plural.version.group". Exit code 0, or 1 if the request failed.
#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "kube/client.h"
#include "kube/config.h"
#include "kube/lease.h"
#include "kube/reflector.h"

namespace {

using nlohmann::json;

void Print(const json& line) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  std::cout << line.dump() << std::endl;
}

const char* Name(base::ErrorCode code) {
  switch (code) {
    case base::ErrorCode::kInvalidArgument:
      return "InvalidArgument";
    case base::ErrorCode::kUnauthorized:
      return "Unauthorized";
    case base::ErrorCode::kForbidden:
      return "Forbidden";
    case base::ErrorCode::kNotFound:
      return "NotFound";
    case base::ErrorCode::kAlreadyExists:
      return "AlreadyExists";
    case base::ErrorCode::kConflict:
      return "Conflict";
    case base::ErrorCode::kGone:
      return "Gone";
    case base::ErrorCode::kInvalid:
      return "Invalid";
    case base::ErrorCode::kTooManyRequests:
      return "TooManyRequests";
    case base::ErrorCode::kTimeout:
      return "Timeout";
    case base::ErrorCode::kUnavailable:
      return "Unavailable";
    case base::ErrorCode::kCancelled:
      return "Cancelled";
    case base::ErrorCode::kInternal:
      return "Internal";
  }
  return "?";
}

int Fail(const base::Error& error) {
  Print({{"error", Name(error.code)},
         {"message", error.message},
         {"retry_after_ms", error.retry_after.count()}});
  return 1;
}

int Report(const base::Result<std::string>& reply) {
  if (!reply.ok()) return Fail(reply.error());
  Print({{"reply", json::parse(*reply, nullptr, false)}});
  return 0;
}

kube::Resource ParseResource(const std::string& text) {
  const auto first = text.find('.');
  if (first == std::string::npos) return {"", "v1", text};
  const auto second = text.find('.', first + 1);
  return {text.substr(second + 1), text.substr(first + 1, second - first - 1),
          text.substr(0, first)};
}

json Brief(std::string_view object) {
  const json full = json::parse(object, nullptr, false);
  if (!full.is_object() || !full.contains("metadata")) return "garbage";
  return {{"name", full["metadata"].value("name", "")},
          {"resourceVersion", full["metadata"].value("resourceVersion", "")},
          {"bytes", object.size()}};
}

class PrintingSink : public kube::Sink {
 public:
  void Replace(const std::vector<std::string_view>& objects,
               const std::string& resource_version) override {
    json names = json::array();
    for (const auto object : objects) names.push_back(Brief(object)["name"]);
    Print({{"replace", names}, {"resourceVersion", resource_version}});
  }
  void Apply(kube::EventType type, std::string_view object) override {
    const char* names[] = {"ADDED", "MODIFIED", "DELETED"};
    Print({{"apply", names[static_cast<int>(type)]}, {"object", Brief(object)}});
  }
  void Progress(const std::string& resource_version) override {
    Print({{"progress", resource_version}});
  }
  void Trouble(const std::string& why) override { Print({{"trouble", why}}); }
};

// Runs `work` on a thread until SIGTERM or SIGINT comes (blocked in main), or it returns.
int UntilSignal(const sigset_t& signals, const std::function<void(std::stop_token)>& work) {
  std::jthread thread([&work](std::stop_token stop) {
    work(std::move(stop));
    kill(getpid(), SIGTERM);
  });
  int signal = 0;
  sigwait(&signals, &signal);
  const auto start = std::chrono::steady_clock::now();
  thread.request_stop();
  thread.join();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  Print({{"stopped_in_ms", took.count()}});
  return 0;
}

int Loop(kube::Client& client, const std::vector<std::string>& args) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::stoi(args[4]));
  std::string last;
  int calls = 0;
  while (std::chrono::steady_clock::now() < end) {
    const auto reply = client.Get(ParseResource(args[1]), args[2], args[3]);
    ++calls;
    const std::string outcome = reply.ok() ? "OK" : Name(reply.error().code);
    if (outcome != last) {
      Print({{"outcome", outcome}, {"message", reply.ok() ? "" : reply.error().message}});
    }
    last = outcome;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  Print({{"calls", calls}, {"outcome", last}});
  return 0;
}

int Watch(kube::Client& client, const std::vector<std::string>& args, const sigset_t& signals) {
  kube::WatchOptions options;
  options.resource_version = args[3];
  options.server_timeout = std::chrono::seconds(std::stoi(args[4]));
  return UntilSignal(signals, [&](std::stop_token stop) {
    const auto on_data = [](std::string_view block) {
      Print({{"block", block.size()}, {"text", block.substr(0, 400)}});
      return true;
    };
    const auto ended = client.Watch(ParseResource(args[1]), args[2], options, on_data, stop);
    if (ended.ok()) {
      Print({{"ended", true}});
    } else {
      Fail(ended.error());
    }
  });
}

int Usage() {
  std::cerr << "kube_probe: wrong arguments, see the head of kube_probe.cpp\n";
  return 2;
}

int Run(const std::vector<std::string>& args, const kube::ConfigOptions& config_options,
        std::chrono::milliseconds timeout, const sigset_t& signals) {
  if (args.empty()) return Usage();
  const std::string& command = args[0];
  if (command == "serve" && args.size() == 2) {
    auto server = kube::Serve(args[1], [](const kube::ServedRequest& request) {
      return kube::ServedResponse{request.path == "/missing" ? 404 : 200, "text/plain",
                                  request.method + " " + request.path + "\n"};
    });
    if (!server.ok()) return Fail(server.error());
    Print({{"port", (*server)->port()}});
    int signal = 0;
    sigwait(&signals, &signal);
    return 0;
  }
  auto config = kube::LoadConfig(config_options);
  if (!config.ok()) return Fail(config.error());
  auto transport = kube::MakeTransport(*config);
  if (!transport.ok()) return Fail(transport.error());
  kube::ClientOptions options;
  options.timeout = timeout;
  kube::Client client(**transport, options);
  if (command == "get" && args.size() == 4) {
    return Report(client.Get(ParseResource(args[1]), args[2], args[3]));
  }
  if (command == "list" && args.size() >= 3) {
    kube::ListOptions list;
    if (args.size() > 3) list.limit = std::stoi(args[3]);
    return Report(client.List(ParseResource(args[1]), args[2], list));
  }
  if (command == "create" && args.size() == 4) {
    return Report(client.Create(ParseResource(args[1]), args[2], args[3]));
  }
  if (command == "patch" && args.size() == 6) {
    return Report(client.MergePatch(ParseResource(args[1]), args[2], args[3], args[4], args[5]));
  }
  if (command == "delete" && args.size() == 5) {
    return Report(client.Delete(ParseResource(args[1]), args[2], args[3], {args[4], {}}));
  }
  if (command == "loop" && args.size() == 5) return Loop(client, args);
  if (command == "watch" && args.size() == 5) return Watch(client, args, signals);
  if (command == "reflect" && args.size() == 3) {
    PrintingSink sink;
    return UntilSignal(signals, [&](std::stop_token stop) {
      kube::RunReflector(client, {ParseResource(args[1]), args[2], ""}, sink, std::move(stop));
    });
  }
  if (command == "lease" && args.size() == 4) {
    options.timeout = options.write_timeout = std::chrono::seconds(2);
    kube::Client own(**transport, options);
    kube::LeaderElection election(own, {args[1], args[2], args[3]}, [](bool leading) {
      Print({{"leading", leading}});
    });
    return UntilSignal(signals, [&](std::stop_token stop) { election.Run(std::move(stop)); });
  }
  return Usage();
}

}  // namespace

int main(int argc, char** argv) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before any thread starts
  kube::ConfigOptions config;
  std::chrono::milliseconds timeout{30000};
  std::vector<std::string> args;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg.rfind("--kubeconfig=", 0) == 0) {
      config.kubeconfig = arg.substr(13);
    } else if (arg.rfind("--context=", 0) == 0) {
      config.context = arg.substr(10);
    } else if (arg.rfind("--timeout-ms=", 0) == 0) {
      timeout = std::chrono::milliseconds(std::stoi(arg.substr(13)));
    } else {
      args.push_back(arg);
    }
  }
  return Run(args, config, timeout, signals);
}
