#include "kube/credentials.h"

#include <fstream>
#include <iterator>
#include <system_error>

#include "kube/exec_plugin.h"

namespace kube {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kLookEvery{1};

std::string Trimmed(const std::string& text) {
  const char* blanks = " \t\r\n";
  const auto begin = text.find_first_not_of(blanks);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

}  // namespace

Credentials::Credentials(const Config& config)
    : config_(config),
      ca_{config.ca_data.empty() ? config.ca_file : "", "certificate-authority", config.ca_data},
      cert_{config.client_cert_data.empty() ? config.client_cert_file : "", "client-certificate",
            config.client_cert_data},
      key_{config.client_key_data.empty() ? config.client_key_file : "", "client-key",
           config.client_key_data},
      token_{config.token_file, "tokenFile", config.token} {}

base::Result<void> Credentials::Refresh(File& file) {
  if (file.path.empty()) return {};
  std::error_code error;
  const auto time = std::filesystem::last_write_time(file.path, error);
  const auto size = error ? 0 : std::filesystem::file_size(file.path, error);
  if (!error && file.read && time == file.time && size == file.size) return {};
  std::ifstream in;
  if (!error) in.open(file.path, std::ios::binary);
  if (error || !in) {
    if (file.read || !file.text.empty()) return {};
    return base::Error{base::ErrorCode::kInvalidArgument,
                       config_.origin + ": " + file.field + ": can't read " + file.path +
                           (error ? ": " + error.message() : ""),
                       {}};
  }
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (text.empty() && file.read) return {};  // caught between truncation and write: look again
  file.text = std::move(text);
  file.time = time;
  file.size = size;
  file.read = true;
  return {};
}

base::Result<void> Credentials::RefreshPlugin(steady_clock::time_point now) {
  if (!config_.exec || (plugin_until_ && now < *plugin_until_)) return {};
  if (!plugin_ran_at_ || now - *plugin_ran_at_ >= kLookEvery) {
    plugin_ran_at_ = now;
    plugin_error_.reset();
    auto credential = RunExecPlugin(*config_.exec, config_, std::chrono::system_clock::now());
    if (credential.ok()) {
      plugin_token_ = credential->token;
      if (!credential->client_cert.empty()) {
        cert_.text = credential->client_cert;
        key_.text = credential->client_key;
      }
      plugin_until_ =
          credential->lifetime ? now + *credential->lifetime : steady_clock::time_point::max();
    } else {
      plugin_error_ = credential.error();
    }
  }
  if (plugin_error_) return *plugin_error_;
  return {};
}

base::Result<Identity> Credentials::Current(steady_clock::time_point now) {
  std::lock_guard lock(mutex_);
  if (!looked_at_ || now - *looked_at_ >= kLookEvery) {
    for (File* file : {&ca_, &cert_, &key_, &token_}) {
      if (auto refreshed = Refresh(*file); !refreshed.ok()) return refreshed.error();
    }
    looked_at_ = now;
  }
  if (auto refreshed = RefreshPlugin(now); !refreshed.ok()) return refreshed.error();
  const TlsMaterial tls{ca_.text, cert_.text, key_.text};
  if (identity_.tls_generation == 0 || !(tls == identity_.tls)) {
    identity_.tls = tls;
    ++identity_.tls_generation;
  }
  const std::string token = Trimmed(token_.text);
  identity_.token = token.empty() ? plugin_token_ : token;
  return identity_;
}

void Credentials::Distrust() {
  std::lock_guard lock(mutex_);
  looked_at_.reset();
  plugin_until_.reset();
}

}  // namespace kube
