// Adapters: which parameters are added to which weights, and the file that describes them; a program without them has no table.
// RUN: split-file %s %t
// RUN: fsdp-translate --fsdp-to-cpp %t/with.mlir | FileCheck %s
// RUN: fsdp-translate --fsdp-to-cpp %t/without.mlir | FileCheck %s --check-prefix=WITHOUT

// CHECK:      constexpr Adapter adapters[] = {
// CHECK-NEXT:   {.weight = "w", .down = "a", .up = "b", .scale = 2.5},
// CHECK-NEXT:   {.weight = "t", .down = "a", .up = "b", .scale = 1.0, .transposed = true},
// CHECK-NEXT: };
// CHECK-NEXT: constexpr ExtraFile adapter_files[] = {
// CHECK-NEXT:   {.name = "adapter_config.json", .text =
// CHECK-NEXT:   "{}\n"
// CHECK-NEXT:   },
// CHECK-NEXT: };
// CHECK:      .adapters = {.files = adapter_files, .products = adapters},
// WITHOUT-NOT: dapter

//--- with.mlir
module attributes {fsdp.phase = "scheduled", fsdp.adapters = {file = "adapter_config.json", text = "{}\n", products = [
    {weight = "w", down = "a", up = "b", scale = 2.5 : f64, transposed = false},
    {weight = "t", down = "a", up = "b", scale = 1.0 : f64, transposed = true}]}} {
  fsdp.param @w : tensor<6x4xf32> unit "u" init <constant, 0.0>
  fsdp.param @t : tensor<4x6xf32> unit "u" init <constant, 0.0>
  fsdp.param @a : tensor<5x4xf32> unit "u" init <constant, 0.0>
  fsdp.param @b : tensor<6x5xf32> unit "u" init <constant, 0.0>
  fsdp.program @all role {} arena 128 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
    }
  }
}
//--- without.mlir
module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} arena 128 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
    }
  }
}
