#pragma once

#include <chrono>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"
#include "kube/config.h"
#include "kube/tls_openssl.h"

namespace kube {

// What a request needs to be trusted, as of now.
struct Identity {
  TlsMaterial tls;
  long tls_generation = 0;  // changes when `tls` does
  std::string token;        // bearer token, "" = none
};

// Reads a Config's files, again when their modification time or size changes (looked at once a
// second at most), and runs its credential plugin when the credential that it gave has expired
// (once a second at most). What can't be read any more keeps its last value. Thread-safe; a plugin
// that runs holds up other callers.
class Credentials {
 public:
  explicit Credentials(const Config& config);

  // Fails with kInvalidArgument if a file was never readable (naming it), kUnauthorized if the
  // plugin gives no credential.
  base::Result<Identity> Current(std::chrono::steady_clock::time_point now);

  // After a 401: files are looked at again and the plugin is run again by the next Current().
  void Distrust();

 private:
  struct File {
    std::string path;  // "" = `text` is given by the config
    std::string field;
    std::string text;
    std::filesystem::file_time_type time{};
    std::uintmax_t size = 0;
    bool read = false;
  };
  base::Result<void> Refresh(File& file);
  base::Result<void> RefreshPlugin(std::chrono::steady_clock::time_point now);

  const Config config_;
  std::mutex mutex_;
  File ca_, cert_, key_, token_;  // these and all below: guarded by mutex_
  Identity identity_;
  std::string plugin_token_;
  std::optional<std::chrono::steady_clock::time_point> looked_at_;
  std::optional<std::chrono::steady_clock::time_point> plugin_ran_at_;
  std::optional<std::chrono::steady_clock::time_point> plugin_until_;  // not set: run it
  std::optional<base::Error> plugin_error_;
};

}  // namespace kube
