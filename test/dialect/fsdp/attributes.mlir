// Every attribute in its one spelling survives two round trips.
// RUN: fsdp-opt %s | fsdp-opt | FileCheck %s

// A device order that is not the identity is kept.
// CHECK: fsdp.mesh @mesh <["data"=2, "fsdp"=2], devices = [0, 2, 1, 3]>
fsdp.mesh @mesh <["data"=2, "fsdp"=2], devices = [0, 2, 1, 3]>

// CHECK: fsdp.param @flat : tensor<4x3xf32> unit "u" init <normal, 2.000000e-02> file_shape [12] placement <flat over ["fsdp"], gather = bf16, reduce = f32, reshard = never>
fsdp.param @flat : tensor<4x3xf32> unit "u" init <normal, 0.02> file_shape [12]
    placement <flat over ["fsdp"], gather = bf16, reduce = f32, reshard = never>

// CHECK: fsdp.param @rows : tensor<4x3xf32> unit "u" init <uniform, 5.000000e-01> placement <dimension 1 over ["data", "fsdp"], gather = f32, reduce = f32, reshard = always>
fsdp.param @rows : tensor<4x3xf32> unit "u" init <uniform, 0.5>
    placement <dimension 1 over ["data", "fsdp"], gather = f32, reduce = f32, reshard = always>

// CHECK: fsdp.param @all : tensor<4x3xf32> unit "u" init <constant, 0.000000e+00> placement <replicated, gather = f32, reduce = f32, reshard = always> frozen
fsdp.param @all : tensor<4x3xf32> unit "u" init <constant, 0.0>
    placement <replicated, gather = f32, reduce = f32, reshard = always> frozen

// Layouts that differ are said one by one; axes that a part is kept over; how it is split in compute.
// CHECK: fsdp.param @zero {{.*}} placement <parameter replicated, gradient flat over ["fsdp"], state flat over ["fsdp"], gather = bf16, reduce = bf16, accumulate = f32, reshard = always, compute = <@mesh, [{"data"}, {?}]>>
fsdp.param @zero : tensor<4x3xf64> unit "z" init <constant, 0.0>
    placement <parameter replicated, gradient flat over ["fsdp"], state flat over ["fsdp"], gather = bf16, reduce = bf16,
               accumulate = f32, reshard = always, compute = <@mesh, [{"data"}, {?}]>>
// CHECK: fsdp.param @part {{.*}} placement <flat over ["fsdp", "data"], gather = f32, reduce = f32, reshard = axes ["fsdp"]>
fsdp.param @part : tensor<4x3xf32> unit "p" init <constant, 0.0>
    placement <flat over ["fsdp", "data"], gather = f32, reduce = f32, reshard = axes ["fsdp"]>
// What compute says of a parameter may differ within a unit.
// CHECK: fsdp.param @other {{.*}} unit "p" {{.*}}, reshard = axes ["fsdp"], compute = <@mesh, [{}]>>
fsdp.param @other : tensor<4xf32> unit "p" init <constant, 0.0>
    placement <flat over ["fsdp", "data"], gather = f32, reduce = f32, reshard = axes ["fsdp"], compute = <@mesh, [{}]>>

// CHECK: module attributes {test.a = #fsdp.layout<flat over ["node", "fsdp"]>, test.b = #fsdp.layout<dimension 2 over ["fsdp"]>, test.c = #fsdp.layout<replicated>}
module attributes {test.a = #fsdp.layout<flat over ["node", "fsdp"]>, test.b = #fsdp.layout<dimension 2 over ["fsdp"]>,
                   test.c = #fsdp.layout<replicated>} {}

// Factors of rates have one spelling; patterns stay in their order.
// CHECK: fsdp.step @groups train optimizer <lion, lr = 1.000000e-01, lr_scale = ["*=0.1", "flat=0"], no_decay = ["*r*", "flat"]>
fsdp.step @groups train optimizer <lion, no_decay = ["*r*", "flat"], lr_scale = ["*=1.0e-1", "flat=0.0"], lr = 0.1> {
}

// Constants that are the default are not printed; the schedule is.
// CHECK: fsdp.step @train train optimizer <adamw, lr = 3.000000e-04, weight_decay = 1.000000e-01, clip = 1.000000e+00, schedule = cosine, warmup = 10>
fsdp.step @train train optimizer <adamw, lr = 3.0e-4, beta1 = 0.9, weight_decay = 0.1, clip = 1.0, schedule = cosine, warmup = 10> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4x2xf32>
  // CHECK: fsdp.constraint %{{.*}} <@mesh, [{"data", "fsdp"}, {?}, {}]>
  %y = fsdp.constraint %x <@mesh, [{"data", "fsdp"}, {?}, {}]> : tensor<8x4x2xf32>
  // CHECK: fsdp.constraint %{{.*}} <@mesh, [{"data"}, {"fsdp", ?}, {}]> priorities [0, 2, 0] :
  %p = fsdp.constraint %x <@mesh, [{"data"}, {"fsdp", ?}, {}]> priorities [0, 2, 0] : tensor<8x4x2xf32>
  // CHECK: fsdp.reshard %{{.*}} <@mesh, [{}, {"fsdp"}, {}]> :
  %r = fsdp.reshard %x <@mesh, [{}, {"fsdp"}, {}]> : tensor<8x4x2xf32>
  // CHECK: arith.negf %{{.*}} {fsdp.shardings = [#fsdp.sharding<@mesh, [{"fsdp", ?}, {}, {}], unreduced = {"data"}>]}
  %z = arith.negf %y {fsdp.shardings = [#fsdp.sharding<@mesh, [{"fsdp", ?}, {}, {}], unreduced = {"data"}>]} : tensor<8x4x2xf32>
  %c = arith.constant dense<1.0> : tensor<f64>
  fsdp.loss %c over %c
}
