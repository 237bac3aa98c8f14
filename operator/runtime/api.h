#pragma once

#include <string>

#include "base/result.h"
#include "core/plan.h"

namespace runtime {

// Everything that the controller and the event recorder ask of the API server; a fake of it is the
// whole outside world in tests. Replies are the server's JSON text. Thread-safe.
class Api {
 public:
  virtual ~Api() = default;
  virtual base::Result<std::string> Get(core::Kind kind, const std::string& ns,
                                        const std::string& name) = 0;
  virtual base::Result<std::string> GetNode(const std::string& name) = 0;
  virtual base::Result<std::string> Create(core::Kind kind, const std::string& ns,
                                           const std::string& body) = 0;
  // A merge patch of the subresource status.
  virtual base::Result<std::string> PatchStatus(const core::JobKey& job,
                                                const std::string& body) = 0;
  // A merge patch of the object itself.
  virtual base::Result<std::string> Patch(core::Kind kind, const std::string& ns,
                                          const std::string& name, const std::string& body) = 0;
  virtual base::Result<std::string> Delete(const std::string& ns, const core::Delete& what) = 0;
  virtual base::Result<std::string> CreateEvent(const std::string& ns, const std::string& body) = 0;
  virtual base::Result<std::string> PatchEvent(const std::string& ns, const std::string& name,
                                               const std::string& body) = 0;
};

}  // namespace runtime
