// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// C1: a rate of one leaves nothing to scale up.

func.func @one(%x: tensor<8xf32>) {
  // expected-error @below {{has rate 1.000000e+00, expected at least 0 and less than 1}}
  %0 = fsdp.dropout %x rate 1.0 name "d" : tensor<8xf32>
  return
}

// -----

func.func @negative(%x: tensor<8xf32>) {
  // expected-error @below {{has rate -1.000000e-01, expected at least 0 and less than 1}}
  %0 = fsdp.dropout %x rate -0.1 name "d" : tensor<8xf32>
  return
}

// -----

// C2

func.func @name(%x: tensor<8xf32>) {
  // expected-error @below {{has an empty name, expected the name that its random numbers are derived from}}
  %0 = fsdp.dropout %x rate 0.1 name "" : tensor<8xf32>
  return
}

// -----

// C3

fsdp.mesh @mesh <["fsdp"=4]>
func.func @sizes(%x: tensor<2x3xf32>) {
  // expected-error @below {{has 1 sizes in 'part_of' and 2 lists of axes in 'over', expected 2 of each (one for each dimension)}}
  %0 = fsdp.dropout %x rate 0.1 name "d" part_of [8] over [["fsdp"], []] : tensor<2x3xf32>
  return
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
func.func @lists(%x: tensor<2x3xf32>) {
  // expected-error @below {{has 2 sizes in 'part_of' and 1 lists of axes}}
  %0 = fsdp.dropout %x rate 0.1 name "d" part_of [8, 3] over [["fsdp"]] : tensor<2x3xf32>
  return
}

// -----

func.func @one_of_two(%x: tensor<2xf32>) {
  // expected-error @below {{has one of 'part_of' and 'over', expected both or neither}}
  %0 = "fsdp.dropout"(%x) <{rate = 0.1, name = "d", part_of = array<i64: 2>}> : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// C4

fsdp.mesh @mesh <["fsdp"=4]>
func.func @unknown(%x: tensor<2xf32>) {
  // expected-error @below {{is split over axis 'data', which the mesh lacks}}
  %0 = fsdp.dropout %x rate 0.1 name "d" part_of [8] over [["data"]] : tensor<2xf32>
  return
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
func.func @twice(%x: tensor<2x2xf32>) {
  // expected-error @below {{is split over axis 'fsdp' twice; use it for one dimension}}
  %0 = fsdp.dropout %x rate 0.1 name "d" part_of [8, 8] over [["fsdp"], ["fsdp"]] : tensor<2x2xf32>
  return
}

// -----

// C5

fsdp.mesh @mesh <["fsdp"=4]>
func.func @part(%x: tensor<2xf32>) {
  // expected-error @below {{holds 2 elements of dimension 0, expected 3 (10 over 4 ranks)}}
  %0 = fsdp.dropout %x rate 0.1 name "d" part_of [10] over [["fsdp"]] : tensor<2xf32>
  return
}

// -----

// C6

fsdp.mesh @mesh <["fsdp"=4]>
func.func @number(%x: tensor<2xf32>) {
  // expected-error @below {{is 'at' microbatch 2, expected 0 to 1, as there are 2 microbatches}}
  %0 = fsdp.dropout %x rate 0.1 name "d" part_of [10] over [["fsdp"]] microbatches 2 along 0 at 2 : tensor<2xf32>
  return
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
func.func @negative(%x: tensor<2xf32>) {
  // expected-error @below {{is 'at' microbatch -1, expected 0 to 1, as there are 2 microbatches}}
  %0 = fsdp.dropout %x rate 0.1 name "d" part_of [10] over [["fsdp"]] microbatches 2 along 0 at -1 : tensor<2xf32>
  return
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
func.func @whole(%x: tensor<3xf32>) {
  // expected-error @below {{is 'at' microbatch 0, but has no 'microbatches'; give both or neither}}
  %0 = fsdp.dropout %x rate 0.1 name "d" part_of [10] over [["fsdp"]] at 0 : tensor<3xf32>
  return
}
