// RUN: fsdp-opt --verify-diagnostics --fsdp-defer-updates %s

// expected-error @below {{defers updates of the local phase, got the global phase; run 'fsdp-partition' first}}
module {
  fsdp.mesh @mesh <["fsdp"=1]>
}
