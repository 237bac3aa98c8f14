#include "kube/reflector.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>
#include <utility>

#include "kube/json_scan.h"
#include "kube/line_splitter.h"
#include "kube/reflector_step.h"

namespace kube {
namespace {

using std::chrono::steady_clock;

// An object in etcd has 1.5 MiB by default, and an event holds one.
constexpr size_t kMaxLine = 64 << 20;
constexpr int kPageSize = 500;
constexpr std::chrono::seconds kShortWatch{1};
constexpr size_t kShownGarbage = 100;

class Reflector {
 public:
  Reflector(Client& client, const ReflectorOptions& options, Sink& sink, std::stop_token stop)
      : client_(client),
        options_(options),
        sink_(sink),
        stop_(std::move(stop)),
        random_(std::random_device{}()) {}

  void Run() {
    while (!stop_.stop_requested()) {
      if (state_.phase == ReflectorState::Phase::kListing) {
        ListOnePage();
      } else {
        WatchOnce();
      }
      std::unique_lock lock(mutex_);
      stopped_.wait_for(lock, stop_, std::exchange(wait_, {}), [] { return false; });
    }
  }

 private:
  // A page's text and the objects in it.
  struct HeldPage {
    std::string text;
    std::vector<std::string_view> items;
  };

  void ListOnePage() {
    ListOptions list;
    list.label_selector = options_.label_selector;
    list.continue_token = state_.continue_token;
    // Where pages expire before they are all read, one big page can't.
    list.limit = state_.expired_pages > 1 ? 0 : kPageSize;
    auto text = client_.List(options_.resource, options_.ns, list, stop_);
    if (stop_.stop_requested()) return;
    if (!text.ok()) return Feed(input::ListFailed{text.error()});
    // In its final place first: the items point into it.
    HeldPage& held = pages_.emplace_back(HeldPage{std::move(*text), {}});
    auto page = ScanList(held.text);
    if (!page) {
      return Feed(input::ListFailed{{base::ErrorCode::kInternal,
                                     "the answer is no list: " + held.text.substr(0, kShownGarbage),
                                     {}}});
    }
    held.items = std::move(page->items);
    Feed(input::Page{std::move(page->resource_version), std::move(page->continue_token)});
  }

  void WatchOnce() {
    WatchOptions watch;
    watch.label_selector = options_.label_selector;
    watch.resource_version = state_.resource_version;
    LineSplitter lines(kMaxLine);
    bool opened = false;
    bool any = false;
    leave_ = false;
    const auto start = steady_clock::now();
    const auto on_line = [this, &any](std::string_view line) {
      any = true;
      FeedLine(line);
      return !leave_ && !stop_.stop_requested();
    };
    const auto on_data = [&](std::string_view block) {
      if (!std::exchange(opened, true)) Feed(input::Opened{});
      if (!lines.Feed(block, on_line)) {
        Feed(input::Garbage{"a line of more than " + std::to_string(kMaxLine >> 20) + " MiB"});
      }
      return !leave_ && !stop_.stop_requested();
    };
    const auto ended = client_.Watch(options_.resource, options_.ns, watch, on_data, stop_);
    if (stop_.stop_requested() || leave_) return;  // if left: the reason has set the wait
    if (!ended.ok()) return Feed(input::WatchFailed{ended.error()});
    Feed(input::WatchEnded{!any && steady_clock::now() - start < kShortWatch});
  }

  void FeedLine(std::string_view line) {
    auto frame = ScanWatchFrame(line);
    if (!frame) return Feed(input::Garbage{std::string(line.substr(0, kShownGarbage))});
    input::Event event{frame->type, frame->object, std::move(frame->resource_version), 0, {}};
    if (event.type == "ERROR") {
      StatusText status = ScanStatus(event.object);
      event.code = status.code;
      event.message = std::move(status.message);
    }
    Feed(event);
  }

  void Feed(const ReflectorInput& input) {
    const double jitter = std::uniform_real_distribution<double>(0, 1)(random_);
    ReflectorStep step = Step(std::move(state_), input, options_.resource, jitter);
    state_ = std::move(step.next);
    wait_ = step.wait;
    for (const auto& effect : step.effects) std::visit([this](const auto& e) { Do(e); }, effect);
  }

  void Do(const effect::DropPages&) { pages_.clear(); }
  void Do(const effect::Replace& replace) {
    std::vector<std::string_view> objects;
    for (const auto& page : pages_) {
      objects.insert(objects.end(), page.items.begin(), page.items.end());
    }
    sink_.Replace(objects, replace.resource_version);
    pages_.clear();
  }
  void Do(const effect::Apply& apply) { sink_.Apply(apply.type, apply.object); }
  void Do(const effect::Progress& progress) { sink_.Progress(progress.resource_version); }
  void Do(const effect::Trouble& trouble) { sink_.Trouble(trouble.why); }
  void Do(const effect::EndWatch&) { leave_ = true; }

  Client& client_;
  const ReflectorOptions& options_;
  Sink& sink_;
  const std::stop_token stop_;
  std::minstd_rand random_;
  ReflectorState state_;
  std::deque<HeldPage> pages_;  // a deque, since items point into the texts
  std::chrono::milliseconds wait_{0};
  bool leave_ = false;
  std::mutex mutex_;
  std::condition_variable_any stopped_;
};

}  // namespace

void RunReflector(Client& client, const ReflectorOptions& options, Sink& sink,
                  std::stop_token stop) {
  Reflector(client, options, sink, std::move(stop)).Run();
}

}  // namespace kube
