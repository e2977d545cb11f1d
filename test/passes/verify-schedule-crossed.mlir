// Two messages of one type, of which the receiver takes the second one first: both ends know the microbatch and the unit.
// DEFINE: %{lower} = fsdp-opt --fsdp-schedule --fsdp-plan-memory --fsdp-link-segments --fsdp-verify-schedule
// RUN: not %{lower} %s 2>&1 | FileCheck %s
// CHECK: error: {{.*}}of microbatch 0 for unit a{{.*}}of microbatch 1 for unit a
// RUN: sed 's/stage 1 microbatch 0/stage 1 microbatch 2/; s/stage 1 microbatch 1/stage 1 microbatch 0/; s/stage 1 microbatch 2/stage 1 microbatch 1/' %s > %t.right && %{lower} %t.right > %t.scheduled
// RUN: sed 's/"a" stage 1 microbatch 0/"b" stage 1 microbatch 0/' %t.right > %t.unit && not %{lower} %t.unit 2>&1 | FileCheck %s --check-prefix=UNIT
// UNIT: error: {{.*}}of microbatch 0 for unit a{{.*}}of microbatch 0 for unit b
// Two values of one unit in one microbatch differ in their number alone, as do those of a step with one microbatch.
// RUN: sed 's/microbatch [01]>/microbatch 0>/' %s > %t.alike && %{lower} %t.alike > %t.scheduled
// RUN: sed -e '/fsdp.send %a/s/{/message 0 {/; /fsdp.send %b/s/{/message 1 {/' -e '/%b = fsdp.receive/s/{/message 1 {/; /%a = fsdp.receive/s/{/message 0 {/' %t.alike > %t.numbers
// RUN: not %{lower} %t.numbers 2>&1 | FileCheck %s --check-prefix=NUMBER
// NUMBER: error: {{.*}}(send value 0 of microbatch 0 for unit a of 3 f32, 12 bytes){{.*}}(receive value 1 of microbatch 0 for unit a of 3 f32, 12 bytes)
// RUN: sed 's/ microbatch 0>/>/' %t.numbers | not %{lower} 2>&1 | FileCheck %s --check-prefix=ONE
// ONE: error: {{.*}}(send value 0 for unit a of 3 f32, 12 bytes){{.*}}(receive value 1 for unit a of 3 f32, 12 bytes)
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.program @first role {pipeline = 0 : i64} {
    fsdp.segment @train train next [@train] {
      %x = arith.constant dense<1.0> : tensor<3xf32>
      %a = math.tanh %x {fsdp.structure = #fsdp.structure<"a" microbatch 0>} : tensor<3xf32>
      fsdp.send %a offset 1 over ["pipeline"] {fsdp.structure = #fsdp.structure<"a" microbatch 0>} : tensor<3xf32>
      %b = math.exp %x {fsdp.structure = #fsdp.structure<"a" microbatch 1>} : tensor<3xf32>
      fsdp.send %b offset 1 over ["pipeline"] {fsdp.structure = #fsdp.structure<"a" microbatch 1>} : tensor<3xf32>
    }
  }
  fsdp.program @second role {pipeline = 1 : i64} {
    fsdp.segment @train train next [@train] {
      %b = fsdp.receive offset -1 over ["pipeline"] {fsdp.structure = #fsdp.structure<"a" stage 1 microbatch 1>} : tensor<3xf32>
      %a = fsdp.receive offset -1 over ["pipeline"] {fsdp.structure = #fsdp.structure<"a" stage 1 microbatch 0>} : tensor<3xf32>
    }
  }
}
