// Parameters that are trained beside others.
// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

module attributes {fsdp.adapters = {file = "adapter_config.json", text = "{}", products = [
    {weight = "w", down = "a", up = "b", scale = 2.0 : f64, transposed = false},
    {weight = "t", down = "a", up = "b", scale = 2.0 : f64, transposed = true}]}} {
  fsdp.param @w : tensor<2x3x4xf32> unit "u" init <constant, 0.0> file_shape [6, 4]
  fsdp.param @t : tensor<4x6xf32> unit "u" init <constant, 0.0>
  fsdp.param @a : tensor<5x4xf32> unit "u" init <constant, 0.0>
  fsdp.param @b : tensor<6x5xf32> unit "u" init <constant, 0.0>
}

// -----

// expected-error@below {{has 'fsdp.adapters' {products = []}, expected the name of a file, its text and a list of products on a module}}
module attributes {fsdp.adapters = {products = []}} {
}

// -----

// expected-error@below {{expected the names of parameters 'weight', 'down' and 'up', matrices in files, of which 'up' times 'down' has the shape of 'weight', a finite 'scale' in f64 and a boolean 'transposed'}}
module attributes {fsdp.adapters = {file = "a.json", text = "", products = [
    {weight = "t", down = "a", up = "b", scale = 2.0 : f64, transposed = false}]}} {
  fsdp.param @t : tensor<4x6xf32> unit "u" init <constant, 0.0>
  fsdp.param @a : tensor<5x4xf32> unit "u" init <constant, 0.0>
  fsdp.param @b : tensor<6x5xf32> unit "u" init <constant, 0.0>
}

// -----

// expected-error@below {{has the adapter {down = "no"}}
module attributes {fsdp.adapters = {file = "a.json", text = "", products = [{down = "no"}]}} {
}

// -----

// expected-error@below {{has the adapter {down = "no", scale}}
module attributes {fsdp.adapters = {file = "a.json", text = "", products = [
    {weight = "t", down = "no", up = "t", scale = 2.0 : f64, transposed = false}]}} {
  fsdp.param @t : tensor<4x4xf32> unit "u" init <constant, 0.0>
}
