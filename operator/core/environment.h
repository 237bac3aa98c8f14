#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "core/model.h"

namespace core {

// The name of the container that trains: `pytorch`, or the only one.
std::string TrainingContainer(const Json& pod_template);

// MASTER_PORT of the job: the training container's port named pytorchjob-port in the template of
// the rendezvous host, else its own variable MASTER_PORT there, else 23456.
int RendezvousPort(const JobSpec& spec);

struct Variable {
  std::string name;
  std::string value;
};
// What every container of this replica gets, in order. PYTHONUNBUFFERED is not among them.
// The PET_ variables are torchrun's flags: https://docs.pytorch.org/docs/stable/elastic/run.html
std::vector<Variable> RendezvousVariables(const Job& job, ReplicaType type, int index, int port);

// Puts `variables` into `container.env`: an entry of the same name is replaced in place, further
// ones of that name are dropped; PYTHONUNBUFFERED=1 is added unless it is there. Names whose value
// this changed are added to `replaced` (may be null).
void ApplyVariables(const std::vector<Variable>& variables, Json* container,
                    std::vector<std::string>* replaced);

}  // namespace core
