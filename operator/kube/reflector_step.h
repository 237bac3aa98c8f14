#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "kube/reflector.h"

// The decisions of a reflector: pure, no I/O, no clock, no random numbers. RunReflector does what
// they say.
namespace kube {

struct ReflectorState {
  enum class Phase { kListing, kWatching };
  Phase phase = Phase::kListing;
  std::string continue_token;    // of the list under way
  std::string resource_version;  // "" = nothing has been listed yet
  int failures = 0;              // since a watch has last brought something
  int older_lists = 0;           // lists in a row that were older than what had been seen
  int expired_pages = 0;         // lists in a row whose continue token had expired
  bool troubled = false;         // Trouble(why) was the last one
};

namespace input {
struct Page {  // of a list
  std::string resource_version;
  std::string continue_token;  // "" = the last one
};
struct ListFailed {
  base::Error error;
};
struct Opened {};  // the server has accepted the watch
struct Event {
  std::string_view type;  // of the frame
  std::string_view object;
  std::string resource_version;
  // Of an ERROR frame: code and message of the Status.
  int code = 0;
  std::string message;
};
struct Garbage {  // a line that is no frame, or too long: something is lost
  std::string why;
};
struct WatchEnded {    // by the server, without error
  bool early = false;  // it was open for less than a second and brought nothing
};
struct WatchFailed {
  base::Error error;
};
}  // namespace input
using ReflectorInput = std::variant<input::Page, input::ListFailed, input::Opened, input::Event,
                                    input::Garbage, input::WatchEnded, input::WatchFailed>;

namespace effect {
struct DropPages {};  // forget the pages of the list under way
struct Replace {      // with the pages of the list that is complete now
  std::string resource_version;
};
struct Apply {
  EventType type;
  std::string_view object;
};
struct Progress {
  std::string resource_version;
};
struct Trouble {
  std::string why;
};
struct EndWatch {};  // leave the watch under way
}  // namespace effect
using ReflectorEffect = std::variant<effect::DropPages, effect::Replace, effect::Apply,
                                     effect::Progress, effect::Trouble, effect::EndWatch>;

struct ReflectorStep {
  ReflectorState next;
  std::vector<ReflectorEffect> effects;  // in this order
  // Wait before the next list or watch. Only of meaning when the request under way has ended.
  std::chrono::milliseconds wait{0};
};

// `jitter` is from [0, 1).
ReflectorStep Step(ReflectorState state, const ReflectorInput& input, const Resource& resource,
                   double jitter);

// 0.1 s, doubled for each failure in a row, 30 s at most, of which up to a half is taken off.
std::chrono::milliseconds Backoff(int failures, double jitter);

}  // namespace kube
