//===- PlanTable.h - the output of `plan` -----------------------*- C++ -*-===//

#ifndef TOOLS_FSDPC_PLANTABLE_H
#define TOOLS_FSDPC_PLANTABLE_H

#include "tools/fsdpc/PlanSearch.h"
#include "llvm/Support/JSON.h"

namespace fsdpc {

/// A search as text: the best plans, their commands, and the disadvantages of others. `command` is
/// that of the model with the options that all plans share, quoted for a shell; `machine` the
/// option --machine, or empty.
void print(const PlanSearchResult &result, const PlanRequest &request, const std::string &command,
           const std::string &machine, llvm::raw_ostream &os);

/// The command that compiles `plan`, and reports on it.
std::string commandOf(const PlanSpec &plan, const std::string &command, const std::string &machine);
/// "data=2,fsdp=4 hsdp --remat=none --accumulate=2 --prefetch=1".
std::string summarize(const PlanSpec &plan);
/// A plan with its costs.
llvm::json::Object toJSON(const RankedPlan &plan);

/// The same as data.
llvm::json::Value toJSON(const PlanSearchResult &result, const PlanRequest &request,
                         const std::string &command, const std::string &machine);

} // namespace fsdpc

#endif // TOOLS_FSDPC_PLANTABLE_H
