#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace core {

// One offending field of a job: `path` as a user would write it
// ("spec.pytorchReplicaSpecs.Worker.replicas", "metadata.name"), `message` what is wrong there.
struct FieldError {
  std::string path;
  std::string message;
};

// Holds a whole PyTorchJob (metadata and spec) against the same rules that the CRD's OpenAPI schema
// and CEL rules enforce at admission, but for those that compare with the previous object. For
// objects that were stored before a rule existed, or under a CRD of another origin.
//
// Takes an object of any shape: missing, null or wrongly typed fields are reported, never thrown.
// Returns every offending field once, in the order of the specification; empty when the job is
// valid. Messages quote at most the first 64 bytes of a user's value and are valid UTF-8.
std::vector<FieldError> Validate(const nlohmann::json& job);

// "path: message" of every error, joined by "; ", for conditions and events. At most `max_bytes`
// long: what does not fit is counted ("; and 3 more").
std::string Describe(const std::vector<FieldError>& errors, std::size_t max_bytes = 1024);

}  // namespace core
