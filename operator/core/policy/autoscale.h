#pragma once

#include "core/draft.h"

namespace core {

// elasticPolicy.metrics: an autoscaling/v2 HorizontalPodAutoscaler named like the job, on its scale
// subresource. Made, brought up to date, or removed when the metrics are.
void WantAutoscaler(Draft* draft);
void DropAutoscaler(Draft* draft);

}  // namespace core
