// Files that stand beside the weights in a checkpoint: each line of a text is a literal; a program without them has no table.
// RUN: split-file %s %t
// RUN: fsdp-translate --fsdp-to-cpp %t/with.mlir | FileCheck %s
// RUN: fsdp-translate --fsdp-to-cpp %t/without.mlir | FileCheck %s --check-prefix=WITHOUT

// CHECK:      constexpr ExtraFile extra_files[] = {
// CHECK-NEXT:   {.name = "config.json", .text =
// CHECK-NEXT:   "{\n"
// CHECK-NEXT:   "  \"layers\": 2\n"
// CHECK-NEXT:   "}\n"
// CHECK-NEXT:   },
// CHECK-NEXT:   {.name = "name", .text =
// CHECK-NEXT:   "no end of line"
// CHECK-NEXT:   },
// CHECK-NEXT:   {.name = "nothing", .text =
// CHECK-NEXT:   ""
// CHECK-NEXT:   },
// CHECK-NEXT: };
// CHECK:      .extraFiles = extra_files,
// WITHOUT-NOT: xtra{{_f|F}}iles

//--- with.mlir
module attributes {fsdp.phase = "scheduled", fsdp.checkpoint_files = {"config.json" = "{\n  \"layers\": 2\n}\n", "name" = "no end of line", "nothing" = ""}} {
  fsdp.program @all role {} arena 128 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
    }
  }
}
//--- without.mlir
module attributes {fsdp.phase = "scheduled", fsdp.checkpoint_files = {}} {
  fsdp.program @all role {} arena 128 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
    }
  }
}
