// The CUDA target says that it is not there.
// RUN: fsdp-translate --fsdp-to-cuda --verify-diagnostics %s

// expected-error @below {{the CUDA target is not there yet; use --fsdp-to-cpp}}
module attributes {fsdp.phase = "scheduled"} {
}
