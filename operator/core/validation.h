#pragma once

#include <cstddef>
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
// objects that were stored before a rule existed, or under a CRD of another origin. Of a pod
// template it checks what the job's rules are about; the rest the API server checks when a pod is
// made.
//
// Takes an object of any shape: missing, null or wrongly typed fields are reported, never thrown;
// null counts as missing. Returns every offending field once, in the order of the specification,
// empty when the job is valid. Stops after 100 fields, so that a hostile object costs little.
// Messages quote at most the first 64 bytes of a user's value and are valid UTF-8.
std::vector<FieldError> Validate(const nlohmann::json& job);

// "path: message" of every error, joined by "; ", for conditions and events. Takes errors while
// they fit in `max_bytes`, the first one always, and counts the rest ("; and 3 more").
std::string Describe(const std::vector<FieldError>& errors, std::size_t max_bytes = 1024);

}  // namespace core
