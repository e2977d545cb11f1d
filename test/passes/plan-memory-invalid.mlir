// RUN: fsdp-opt --fsdp-plan-memory --verify-diagnostics %s

// expected-error@below {{plans memory in the scheduled phase, got the local phase; run 'fsdp-schedule' first}}
module attributes {fsdp.phase = "local"} {
}
