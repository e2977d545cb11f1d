// RUN: fsdp-opt %s --fsdp-count-samples --split-input-file | FileCheck %s

// A sum over samples leaves out those that do not count; the constant weight of 8 x 3 elements follows.
// CHECK-LABEL: fsdp.step @evaluate
// CHECK-NEXT: %[[N:.*]] = fsdp.sample_count of 8
// CHECK: %[[SQUARE:.*]] = arith.mulf
// CHECK: %[[M:.*]] = fsdp.mask_samples %[[SQUARE]], %[[N]] dim 0 fill 0.000000e+00 : tensor<8x3xf32>
// CHECK: %[[SUM:.*]] = nn.reduce sum "b o ->" %[[M]]
// CHECK: %[[F:.*]] = arith.sitofp %[[N]] : tensor<i64> to tensor<f64>
// CHECK: %[[EACH:.*]] = arith.constant dense<3.000000e+00> : tensor<f64>
// CHECK: %[[WEIGHT:.*]] = arith.mulf %[[F]], %[[EACH]]
// CHECK: fsdp.loss %[[SUM]] over %[[WEIGHT]]
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x3xf32>
  %square = arith.mulf %x, %x : tensor<8x3xf32>
  %sum = nn.reduce sum "b o ->" %square : tensor<8x3xf32> -> tensor<f64>
  %weight = arith.constant dense<24.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

// -----

// A step that trains, and a batch of one sample, stay as they are.
// CHECK-LABEL: fsdp.step @train
// CHECK-NOT: fsdp.sample_count
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
  %sum = nn.reduce sum "b ->" %x : tensor<8xf32> -> tensor<f64>
  %weight = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
fsdp.step @one evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<1xf32>
  %sum = nn.reduce sum "b ->" %x : tensor<1xf32> -> tensor<f64>
  %weight = arith.constant dense<1.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

// -----

// Samples are followed through merged dimensions, six elements each. A weight from the data is a sum over samples
// as it stands; a mean over the batch is divided by what counts, and counts for the part that there is.
// CHECK-LABEL: fsdp.step @merged
// CHECK: %[[N:.*]] = fsdp.sample_count of 4
// CHECK: %[[ROWS:.*]] = nn.rearrange "b t d -> (b t) d"
// CHECK: fsdp.mask_samples %[[ROWS]], %[[N]] dim 0 rows 6 fill 0.000000e+00 : tensor<24x5xf32>
// CHECK: %[[TOTAL:.*]] = nn.reduce sum "r d -> d"
// CHECK: %[[F:.*]] = arith.sitofp %[[N]] : tensor<i64> to tensor<f32>
// CHECK: %[[SIX:.*]] = arith.constant dense<6.000000e+00> : tensor<f32>
// CHECK: %[[COUNT:.*]] = arith.mulf %[[F]], %[[SIX]]
// CHECK: %[[EACH:.*]] = nn.repeat "-> d" %[[COUNT]]
// CHECK: arith.divf %[[TOTAL]], %[[EACH]] : tensor<5xf32>
// CHECK: fsdp.mask_samples %{{.*}}, %[[N]] dim 0 fill 0.000000e+00 : tensor<4xf32>
// CHECK-NEXT: %[[S:.*]] = nn.reduce sum "b ->"
// CHECK-NEXT: %[[MW:.*]] = fsdp.mask_samples %{{.*}}, %[[N]] dim 0 fill 0.000000e+00 : tensor<4xf32>
// CHECK-NEXT: %[[W:.*]] = nn.reduce sum "b ->" %[[MW]]
// CHECK-NEXT: fsdp.loss %[[S]] over %[[W]]
// CHECK: arith.mulf
// CHECK: arith.divf
// CHECK: fsdp.metric "mean"
fsdp.step @merged evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4x6x5xf32>
  %w = fsdp.input "w" sample_dim 0 : tensor<4xf32>
  %rows = nn.rearrange "b t d -> (b t) d" %x : tensor<4x6x5xf32> -> tensor<24x5xf32>
  %means = nn.reduce mean "r d -> d" %rows : tensor<24x5xf32> -> tensor<5xf32>
  %mean = nn.reduce sum "d ->" %means : tensor<5xf32> -> tensor<f64>
  %max = nn.reduce max "b t d -> b" %x : tensor<4x6x5xf32> -> tensor<4xf32>
  %weighted = arith.mulf %max, %w : tensor<4xf32>
  %sum = nn.reduce sum "b ->" %weighted : tensor<4xf32> -> tensor<f64>
  %weight = nn.reduce sum "b ->" %w : tensor<4xf32> -> tensor<f64>
  fsdp.loss %sum over %weight
  %one = arith.constant dense<1.0> : tensor<f64>
  fsdp.metric "mean" %mean over %one
}

// -----

// In a product one side is masked, the smaller one. What stands beside a sum over samples, here a penalty on the
// parameter, is for the whole batch and counts for the part that there is, also below a constant factor.
// CHECK-LABEL: fsdp.step @mixed
// CHECK: %[[N:.*]] = fsdp.sample_count of 8
// CHECK: %[[Y:.*]] = fsdp.input "y"
// CHECK: %[[M:.*]] = fsdp.mask_samples %[[Y]], %[[N]] dim 0 fill 0.000000e+00 : tensor<8xf64>
// CHECK: %[[SUM:.*]] = nn.einsum "bi,b->i" %{{.*}}, %[[M]]
// CHECK: %[[READ:.*]] = fsdp.read @w
// CHECK: %[[PENALTY:.*]] = nn.reduce sum "i ->"
// CHECK: %[[F:.*]] = arith.sitofp %[[N]]
// CHECK: %[[P:.*]] = arith.mulf %[[PENALTY]], %[[F]]
// CHECK: %[[EIGHT:.*]] = arith.constant dense<8.000000e+00> : tensor<f64>
// CHECK: %[[PART:.*]] = arith.divf %[[P]], %[[EIGHT]]
// CHECK-NOT: arith.addf %{{.*}}, %[[PENALTY]]
// CHECK: %[[BOTH:.*]] = arith.addf %{{.*}}, %[[PART]]
// CHECK: fsdp.loss %[[BOTH]] over
// CHECK: %[[HALF:.*]] = arith.constant dense<5.000000e-01>
// CHECK: %[[PART2:.*]] = arith.divf
// CHECK: %[[BOTH2:.*]] = arith.addf %{{.*}}, %[[PART2]]
// CHECK: %[[HALVED:.*]] = arith.mulf %[[BOTH2]], %[[HALF]]
// CHECK: fsdp.metric "half" %[[HALVED]] over
fsdp.param @w : tensor<3xf64> unit "w" init <constant, 0.0>
fsdp.step @mixed evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x3xf64>
  %y = fsdp.input "y" sample_dim 0 : tensor<8xf64>
  %sums = nn.einsum "bi,b->i" %x, %y : (tensor<8x3xf64>, tensor<8xf64>) -> tensor<3xf64>
  %sum = nn.reduce sum "i ->" %sums : tensor<3xf64> -> tensor<f64>
  %w = fsdp.read @w : tensor<3xf64>
  %square = arith.mulf %w, %w : tensor<3xf64>
  %penalty = nn.reduce sum "i ->" %square : tensor<3xf64> -> tensor<f64>
  %both = arith.addf %sum, %penalty : tensor<f64>
  %eight = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %both over %eight
  %half = arith.constant dense<0.5> : tensor<f64>
  %halved = arith.mulf %both, %half : tensor<f64>
  fsdp.metric "half" %halved over %eight
}

// -----

// A sum over samples stays one behind what cuts, joins or accumulates it, and a cast of a sum beside a constant grows
// like the sum.
// CHECK-LABEL: fsdp.step @linear
// CHECK: nn.scan_sum
// CHECK: %[[SUM:.*]] = nn.reduce sum "o ->"
// CHECK: %[[GROWN:.*]] = arith.mulf
// CHECK: arith.addf %[[SUM]], %[[GROWN]] : tensor<f64>
// CHECK: %[[NARROW:.*]] = arith.truncf %{{.*}} : tensor<f64> to tensor<f32>
// CHECK: %[[WIDE:.*]] = arith.extf %[[NARROW]] : tensor<f32> to tensor<f64>
// CHECK: fsdp.loss %[[WIDE]] over
fsdp.step @linear evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x3xf32>
  %columns = nn.reduce sum "b o -> o" %x : tensor<8x3xf32> -> tensor<3xf32>
  %two = nn.slice %columns dim 0 start 0 : tensor<3xf32> -> tensor<2xf32>
  %padded = nn.pad %two dim 0 low 1 : tensor<2xf32> -> tensor<4xf32>
  %joined = nn.concat %padded, %columns dim 0 : (tensor<4xf32>, tensor<3xf32>) -> tensor<7xf32>
  %scanned = nn.scan_sum "o" along "o" %joined : tensor<7xf32>
  %sum = nn.reduce sum "o ->" %scanned : tensor<7xf32> -> tensor<f64>
  %constant = arith.constant dense<16.0> : tensor<f64>
  %both = arith.addf %sum, %constant : tensor<f64>
  %narrow = arith.truncf %both : tensor<f64> to tensor<f32>
  %wide = arith.extf %narrow : tensor<f32> to tensor<f64>
  fsdp.loss %wide over %constant
}
