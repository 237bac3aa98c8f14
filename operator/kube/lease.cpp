#include "kube/lease.h"

#include <algorithm>
#include <utility>

namespace kube {
namespace {

using Kind = LeaseAction::Kind;

// The record says itself how long it is to be believed in; one that does not say so, as long as
// ours.
std::chrono::milliseconds Lifetime(const LeaseRecord& record, const LeaseOptions& options) {
  if (record.duration_seconds <= 0) return options.duration;
  return std::chrono::seconds(record.duration_seconds);
}

void Observe(LeaseState& state, const LeaseRecord& record, LeaseTime now) {
  // Its resourceVersion alone changes by labels and the like, which are no sign of life.
  LeaseRecord known = state.observed.value_or(LeaseRecord{});
  known.resource_version = record.resource_version;
  if (!state.observed || !(known == record)) state.observed_at = now;
  state.observed = record;
}

LeaseRecord Claim(const LeaseState& state, const LeaseOptions& options,
                  const std::string& now_text) {
  LeaseRecord record = state.observed.value_or(LeaseRecord{});
  if (record.holder != options.identity) {
    if (!record.holder.empty() || !record.acquire_time.empty()) ++record.transitions;
    record.acquire_time = now_text;
  }
  record.holder = options.identity;
  record.renew_time = now_text;
  record.duration_seconds =
      static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(options.duration).count());
  return record;
}

LeaseAction WaitUntil(LeaseTime until) { return {Kind::kWait, {}, until}; }

// What to do about a Lease that has just been read (or was not found).
LeaseAction AfterRead(const LeaseState& state, const LeaseOptions& options, LeaseTime now,
                      const std::string& now_text) {
  if (!state.observed) return {Kind::kCreate, Claim(state, options, now_text), {}};
  const LeaseRecord& record = *state.observed;
  const LeaseTime expires = state.observed_at + Lifetime(record, options);
  const bool others = !record.holder.empty() && record.holder != options.identity;
  if (others && now < expires) {
    // Half the period, so that a last renewal is not seen much later than it was made.
    return WaitUntil(std::min(expires, now + options.retry_period / 2));
  }
  return {Kind::kUpdate, Claim(state, options, now_text), {}};
}

}  // namespace

bool MayWrite(const LeaseState& state, const LeaseOptions& options, LeaseTime now) {
  return state.leading && now < state.renewed_at + options.renew_deadline;
}

LeaseStep Step(LeaseState state, const LeaseInput& input, const LeaseOptions& options,
               LeaseTime now, const std::string& now_text) {
  LeaseAction action = WaitUntil(now + options.retry_period);
  switch (input.kind) {
    case LeaseInput::Kind::kTick:
      // A leader renews what it has written, others have to look first.
      action = MayWrite(state, options, now) && !state.must_read
                   ? LeaseAction{Kind::kUpdate, Claim(state, options, now_text), {}}
                   : LeaseAction{Kind::kRead, {}, {}};
      break;
    case LeaseInput::Kind::kRead:
      state.must_read = false;
      if (input.record) {
        Observe(state, *input.record, now);
        if (input.record->holder != options.identity) state.leading = false;
      } else {
        state.observed.reset();
        state.leading = false;
      }
      action = AfterRead(state, options, now, now_text);
      break;
    case LeaseInput::Kind::kWritten:
      if (input.record) Observe(state, *input.record, now);
      state.leading = true;
      state.renewed_at = input.sent;
      // From when it was sent, so that a slow server does not stretch the period.
      action = WaitUntil(std::max(now, input.sent + options.retry_period));
      break;
    case LeaseInput::Kind::kFailed:
      // A conflict, or a write whose fate is unknown. `leading` stays
      // until the deadline, since others wait for longer than that.
      state.must_read = true;
      action =
          WaitUntil(now + (state.leading ? options.retry_period / 4 : options.retry_period / 2));
      break;
  }
  if (state.leading && !MayWrite(state, options, now)) state.leading = false;
  return {std::move(state), std::move(action)};
}

}  // namespace kube
