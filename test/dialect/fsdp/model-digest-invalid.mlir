// RUN: fsdp-opt %s -split-input-file -verify-diagnostics

// As the compiler writes it.
module attributes {fsdp.model_digest = "v1:9d2f0c1e8a7b6543"} {
}

// -----

// expected-error@below {{has 'fsdp.model_digest' "9d2f0c1e8a7b6543", expected "v", a version, ':' and 16 hexadecimal digits on a module}}
module attributes {fsdp.model_digest = "9d2f0c1e8a7b6543"} {
}

// -----

// expected-error@below {{has 'fsdp.model_digest' "v1:9D2F0C1E8A7B6543", expected "v", a version}}
module attributes {fsdp.model_digest = "v1:9D2F0C1E8A7B6543"} {
}

// -----

// expected-error@below {{has 'fsdp.model_digest' 1 : i64, expected "v", a version}}
module attributes {fsdp.model_digest = 1 : i64} {
}

// -----

module {
  // expected-error@below {{has 'fsdp.model_digest' "v1:9d2f0c1e8a7b6543", expected "v", a version}}
  fsdp.mesh @mesh <["fsdp"=2]> {fsdp.model_digest = "v1:9d2f0c1e8a7b6543"}
}
