//===- Plans.h - selects one of the plans of a program ----------*- C++ -*-===//

#ifndef FSDP_RUNTIME_TRAIN_PLANS_H
#define FSDP_RUNTIME_TRAIN_PLANS_H

#include "base/Error.h"
#include "runtime/program/Program.h"

#include <string>

namespace fsdp::rt {

/// The mesh of a plan: "data=2,fsdp=2".
std::string meshOf(const Program &plan);
/// "fsdp=4 (4 ranks) and data=2,fsdp=2 (4 ranks)"
std::string describePlans(Plans plans);

/// The plan with the mesh `text`, ignoring axes of size 1; null if there is none.
const Program *planNamed(Plans plans, const std::string &text);
/// The first of the plans for `ranks` ranks; null if there is none.
const Program *planFor(Plans plans, int ranks);
/// The first of the plans for the most ranks below `ranks`; null if there is none.
const Program *planBelow(Plans plans, int ranks);

/// A launcher has started a number of ranks for which there is no plan. Every rank of the job
/// detects this.
struct NoPlan {
  base::Error error;
  int rank; ///< of this process
};

/// The plan of a run: `asked` unless that is null, otherwise the plan for the number of ranks that
/// a launcher has started, else the first. Throws NoPlan.
const Program &pickPlan(Plans plans, const Program *asked);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_PLANS_H
