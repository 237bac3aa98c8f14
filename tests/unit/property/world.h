#pragma once

#include <optional>
#include <string>
#include <vector>

#include "property/cluster.h"
#include "property/history.h"
#include "property/kubelet.h"
#include "property/operator_model.h"
#include "property/oracle.h"

namespace model {

// Runs one history: the cluster, the operator, those who disturb them, and the oracle that watches.
class World {
 public:
  explicit World(const Setup& setup, OperatorModel::Log log = nullptr);

  void Do(const Op& op);
  // No more faults, and every pod succeeds: the job must come to its end by itself.
  void Conclude();

 private:
  void Pass(int arg, int crash_after, Fault fault);
  void Settle();
  // Time passes until the operator's timer; false when it has none.
  bool Sleep();
  std::string DoKubelet(const Op& op);
  void DoUser(const Op& op);
  void Scale(int arg);
  void Note(const std::string& text);
  bool Finished() const;

  TimePoint clock_;
  const Setup setup_;
  const OperatorModel::Log log_;
  Cluster cluster_;
  Kubelet kubelet_;
  Oracle oracle_;
  OperatorModel operator_;
};

// What went wrong, if anything.
std::optional<std::string> Run(const History& history);
// The same, told step by step.
std::string Tell(const History& history);

}  // namespace model
