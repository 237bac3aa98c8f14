#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Finds parts of a JSON text without building a tree: a watch hands on the text of its objects, and
// a tree of a pod is a hundred times its struct. Brackets are matched and strings are skipped
// properly; what is inside of a part is not checked further, whoever decodes it does that.
namespace kube {

// One frame of a watch: {"type": "ADDED", "object": {...}}.
struct WatchFrame {
  std::string_view type;
  std::string_view object;       // "{...}"
  std::string resource_version;  // of object.metadata, "" if it has none
};
// Nothing if the line is not such a frame.
std::optional<WatchFrame> ScanWatchFrame(std::string_view line);

// code and message of a metav1.Status.
struct StatusText {
  int code = 0;
  std::string message;
};
StatusText ScanStatus(std::string_view object);

// One page of a list.
struct ListPage {
  std::string resource_version;
  std::string continue_token;
  std::vector<std::string_view> items;
};
// Nothing if the text is no list with a metadata.resourceVersion.
std::optional<ListPage> ScanList(std::string_view text);

}  // namespace kube
