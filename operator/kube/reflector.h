#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/client.h"

namespace kube {

enum class EventType { kAdded, kModified, kDeleted };

// Where a reflector delivers. Called from the reflector's thread only, in order. `object` is the
// JSON text of one object and valid during the call only. What an implementation can't decode it
// must swallow: one bad object never stops the stream.
class Sink {
 public:
  virtual ~Sink() = default;
  // A complete list at `resource_version`: whatever is not in it is gone.
  virtual void Replace(const std::vector<std::string_view>& objects,
                       const std::string& resource_version) = 0;
  virtual void Apply(EventType type, std::string_view object) = 0;
  // The stream has passed `resource_version` (after an event, or by a bookmark).
  virtual void Progress(const std::string& resource_version) = 0;
  // Connection state for humans: called once when it is lost (with why) and once when it is back
  // ("").
  virtual void Trouble(const std::string& why) = 0;
};

struct ReflectorOptions {
  Resource resource;
  std::string ns;  // "" = all
  std::string label_selector;
};

// List, then watch from its resourceVersion, for ever: resumes after a dropped watch, takes
// bookmarks, relists on 410 (as a status or inside a 200), backs off 0.1 s … 30 s with jitter on
// errors, and waits likewise while the resource does not exist (404). Returns when `stop` is
// requested. Protocol:
// https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
void RunReflector(Client& client, const ReflectorOptions& options, Sink& sink,
                  std::stop_token stop);

}  // namespace kube
