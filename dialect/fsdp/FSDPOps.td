//===- FSDPOps.td - every op of the dialect -------------------------------===//

#ifndef FSDP_OPS_TD
#define FSDP_OPS_TD

include "dialect/fsdp/FSDPModuleOps.td"
include "dialect/fsdp/FSDPGlobalOps.td"
include "dialect/fsdp/FSDPManualOps.td"
include "dialect/fsdp/FSDPLocalOps.td"
include "dialect/fsdp/FSDPCollectiveOps.td"
include "dialect/fsdp/FSDPOptimizerOps.td"
include "dialect/fsdp/FSDPRandomOps.td"
include "dialect/fsdp/FSDPSampleOps.td"
include "dialect/fsdp/FSDPTimelineOps.td"

#endif // FSDP_OPS_TD
