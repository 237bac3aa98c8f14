#pragma once

#include <functional>
#include <string>

#include "kube/client.h"
#include "runtime/api.h"

namespace runtime {

// Where the API server serves the objects of this kind. PodGroups are those of the gang scheduler.
kube::Resource ResourceOf(core::Kind kind, const std::string& gang_scheduler);

// The Api of a real cluster. `may_write` is asked before each write; while it says no, writes fail
// with kCancelled (a leader that lost its lease). `client` outlives this object.
class KubeApi : public Api {
 public:
  KubeApi(kube::Client& client, std::string gang_scheduler, std::function<bool()> may_write);

  base::Result<std::string> Get(core::Kind kind, const std::string& ns,
                                const std::string& name) override;
  base::Result<std::string> GetNode(const std::string& name) override;
  base::Result<std::string> Create(core::Kind kind, const std::string& ns,
                                   const std::string& body) override;
  base::Result<std::string> PatchStatus(const core::JobKey& job, const std::string& body) override;
  base::Result<std::string> Patch(core::Kind kind, const std::string& ns, const std::string& name,
                                  const std::string& body) override;
  base::Result<std::string> Delete(const std::string& ns, const core::Delete& what) override;
  base::Result<std::string> CreateEvent(const std::string& ns, const std::string& body) override;
  base::Result<std::string> PatchEvent(const std::string& ns, const std::string& name,
                                       const std::string& body) override;

 private:
  template <class Write>
  base::Result<std::string> Guarded(Write write);

  kube::Client& client_;
  const std::string gang_scheduler_;
  const std::function<bool()> may_write_;
};

}  // namespace runtime
