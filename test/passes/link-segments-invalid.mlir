// RUN: fsdp-opt --split-input-file --verify-diagnostics --fsdp-link-segments %s

// expected-error @below {{links segments of the scheduled phase, got the global phase; run 'fsdp-schedule' first}}
module {
  fsdp.mesh @mesh <["fsdp"=1]>
}

// -----

module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=1]>
  // expected-error @below {{has no memory plan; run 'fsdp-plan-memory' first}}
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
    }
  }
}

// -----

module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=1]>
  // expected-error @below {{already has events; link its segments once}}
  fsdp.program @all role {} arena 64 {
    %e = fsdp.event "e"
    fsdp.segment @train train next [@train] {
    }
  }
}
