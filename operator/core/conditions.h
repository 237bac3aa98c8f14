#pragma once

#include <string>
#include <string_view>

#include "core/model.h"

namespace core {

inline constexpr char kCreated[] = "Created";
inline constexpr char kRunning[] = "Running";
inline constexpr char kRestarting[] = "Restarting";
inline constexpr char kSucceeded[] = "Succeeded";
inline constexpr char kFailed[] = "Failed";
inline constexpr char kSuspended[] = "Suspended";
inline constexpr char kReplicaFailure[] = "ReplicaFailure";

inline constexpr char kReasonCreated[] = "PyTorchJobCreated";
inline constexpr char kReasonRunning[] = "PyTorchJobRunning";
inline constexpr char kReasonRestarting[] = "PyTorchJobRestarting";
inline constexpr char kReasonSucceeded[] = "PyTorchJobSucceeded";
inline constexpr char kReasonFailed[] = "PyTorchJobFailed";
inline constexpr char kReasonSuspended[] = "PyTorchJobSuspended";
inline constexpr char kReasonResumed[] = "PyTorchJobResumed";
inline constexpr char kReasonValidation[] = "PyTorchJobFailedValidation";
inline constexpr char kReasonBackoff[] = "BackoffLimitExceeded";
inline constexpr char kReasonDeadline[] = "DeadlineExceeded";

// Sets one condition. Nothing changes when status, reason and message are equal; the transition
// time moves only with the status. Times are cut to seconds.
void SetCondition(JobStatus* status, std::string_view type, bool value, const std::string& reason,
                  const std::string& message, TimePoint now);

// Makes `type` the one true condition of Running, Restarting, Suspended, Succeeded, Failed. What
// stops being true takes `reason` and `message`, but at the end of the job it keeps its own.
void Enter(JobStatus* status, std::string_view type, const std::string& reason,
           const std::string& message, TimePoint now);

// Makes `type` False if it is True.
void Leave(JobStatus* status, std::string_view type, const std::string& reason,
           const std::string& message, TimePoint now);

// Created first, ReplicaFailure right after it, then the false ones in the order of their last
// change, the true one last. While nothing else is true Created (and a true ReplicaFailure after
// it) comes last, so that the last element is always a true one.
void Order(JobStatus* status);

}  // namespace core
