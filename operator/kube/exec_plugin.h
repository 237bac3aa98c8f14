#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/config.h"

namespace kube {

// status of an ExecCredential.
struct ExecCredential {
  std::string token;
  std::string client_cert, client_key;                // PEM
  std::optional<std::chrono::milliseconds> lifetime;  // from now; not set: for ever
};

// Runs the plugin and waits for it (30 s at most). Its standard error is passed on to ours.
// Errors: kUnauthorized, naming the command and what to do.
base::Result<ExecCredential> RunExecPlugin(const ExecPlugin& plugin, const Config& cluster,
                                           std::chrono::system_clock::time_point now);

// Reads what the plugin printed.
base::Result<ExecCredential> ParseExecCredential(std::string_view json,
                                                 std::chrono::system_clock::time_point now);

}  // namespace kube
