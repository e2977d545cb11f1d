// RUN: fsdp-opt %s -verify-diagnostics
// expected-error@+1 {{looked at}}
// expected-error@+2 not looked at
