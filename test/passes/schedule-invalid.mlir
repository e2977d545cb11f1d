// RUN: fsdp-opt --fsdp-schedule --split-input-file --verify-diagnostics %s
// RUN: not fsdp-opt --fsdp-schedule=prefetch=-1 %S/schedule-flatten.mlir 2>&1 | FileCheck %s --check-prefix=PREFETCH

// Options of passes take numbers as the command lines do: decimal, and in 64 bits.
// RUN: not fsdp-opt --fsdp-schedule=prefetch=010 %S/schedule-flatten.mlir 2>&1 | FileCheck %s --check-prefix=OCTAL

// PREFETCH: got '-1', expected an integer from 0 to 9223372036854775807
// OCTAL: got '010', expected an integer from 0 to 9223372036854775807

// expected-error@below {{schedules the local phase, got the global phase; run 'fsdp-partition' first}}
module {
}

// -----

// expected-error@below {{schedules the local phase, got the scheduled phase; give it the IR of '--emit=local'}}
module attributes {fsdp.phase = "scheduled"} {
}

// -----

// A store of anything but the update in place.
module attributes {fsdp.phase = "local"} {
  fsdp.param @w : tensor<8xf32> unit "w" init <constant, 0.0>
  fsdp.storage @w.replicated : tensor<8xf32> replicated over [] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %p = fsdp.load @w.replicated "parameter" : tensor<8xf32>
      %n = arith.negf %p : tensor<8xf32>
      // expected-error@below {{stores another value into storage 'w.replicated', expected the result of an 'fsdp.optimizer_step' or 'fsdp.all_gather' of that storage}}
      fsdp.store %n, @w.replicated "parameter" : tensor<8xf32>
    }
  }
}

// -----

// A use of the parameter that was loaded before the update, after it.
module attributes {fsdp.phase = "local"} {
  fsdp.param @w : tensor<8xf32> unit "w" init <constant, 0.0>
  fsdp.storage @w.replicated : tensor<8xf32> replicated over [] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %p = fsdp.load @w.replicated "parameter" : tensor<8xf32>
      %v = fsdp.view %p at 0 : tensor<8xf32> -> tensor<2x4xf32>
      %one = arith.constant dense<1.0> : tensor<f32>
      %g = arith.negf %p : tensor<8xf32>
      %ok = fsdp.acceptable %one norm %one
      %lr = fsdp.learning_rate <sgd, lr = 0.1>
      %p1 = fsdp.optimizer_step <sgd, lr = 0.1> @w.replicated %p, %g states() lr %lr scale %one if %ok : tensor<8xf32> states 0
      fsdp.store %p1, @w.replicated "parameter" : tensor<8xf32>
      // expected-error@below {{reads the value of storage 'w.replicated' from before its update; load it after the update}}
      %s = nn.reduce sum "a b ->" %v : tensor<2x4xf32> -> tensor<f64>
    }
  }
}

// -----

// What is gathered or reduced is a storage.
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
      // expected-error@below {{has 'fsdp.gathers' @w.flat, expected a storage}}
      %g = fsdp.all_gather %x dim 0 over ["fsdp"] {fsdp.gathers = @w.flat, fsdp.structure = #fsdp.structure<"w">} : tensor<8xf32> -> tensor<16xf32>
    }
  }
}

// -----

// A value that is carried until another one takes its place is not read behind that.
module attributes {fsdp.phase = "local"} {
  fsdp.carried @sum : tensor<8xf32>
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %one = arith.constant dense<1.0> : tensor<8xf32>
      %a = arith.negf %one : tensor<8xf32>
      fsdp.carry_store %a, @sum : tensor<8xf32>
      %b = math.exp %a : tensor<8xf32>
      fsdp.carry_store %b, @sum : tensor<8xf32>
      // expected-error@below {{reads the value of storage 'sum' from before its update; load it after the update}}
      %s = nn.reduce sum "a ->" %a : tensor<8xf32> -> tensor<f64>
    }
  }
}

// -----

// A value that is stored after another one is computed in their place only after that is stored.
module attributes {fsdp.phase = "local"} {
  fsdp.carried @twice : tensor<8xf32> zeroed
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
      // expected-error@below {{computes a later value of carried tensor 'twice' in its place before an earlier one is stored; compute it after that 'fsdp.carry_store'}}
      %a = arith.addf %x, %x : tensor<8xf32>
      %b = arith.negf %x : tensor<8xf32>
      %first = fsdp.flatten %b : (tensor<8xf32>) -> tensor<8xf32>
      fsdp.carry_store %first, @twice : tensor<8xf32>
      %second = fsdp.flatten %a : (tensor<8xf32>) -> tensor<8xf32>
      fsdp.carry_store %second, @twice : tensor<8xf32>
    }
  }
}

// -----

// What was loaded before both is not read after a part of either.
module attributes {fsdp.phase = "local"} {
  fsdp.carried @both : tensor<8xf32> zeroed
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
      %old = fsdp.carry_load @both : tensor<8xf32>
      %a = arith.addf %x, %x : tensor<8xf32>
      // expected-error@below {{reads the value of storage 'both' from before its update; load it after the update}}
      %s = nn.reduce sum "a ->" %old : tensor<8xf32> -> tensor<f64>
      %b = arith.negf %x : tensor<8xf32>
      %first = fsdp.flatten %b : (tensor<8xf32>) -> tensor<8xf32>
      fsdp.carry_store %first, @both : tensor<8xf32>
      %second = fsdp.flatten %a : (tensor<8xf32>) -> tensor<8xf32>
      fsdp.carry_store %second, @both : tensor<8xf32>
    }
  }
}

// -----

// The parts of a flat value are computed in their places before it is stored; other parts may be read.
module attributes {fsdp.phase = "local"} {
  fsdp.carried @parts : tensor<16xf32> zeroed
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %g = fsdp.input "g" sample_dim 0 : tensor<8xf32>
      %old = fsdp.carry_load @parts : tensor<16xf32>
      %first = fsdp.view %old at 0 : tensor<16xf32> -> tensor<8xf32>
      %second = fsdp.view %old at 8 : tensor<16xf32> -> tensor<8xf32>
      %a = arith.addf %first, %g : tensor<8xf32>
      %b = arith.addf %second, %g : tensor<8xf32>
      // expected-error@below {{reads the value of storage 'parts' from before its update; load it after the update}}
      %norm = fsdp.square_sum %old : tensor<16xf32>
      %new = fsdp.flatten %a, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
      fsdp.carry_store %new, @parts : tensor<16xf32>
    }
  }
}

// -----

// An update writes to the places of its operands, whether or not its results are stored.
module attributes {fsdp.phase = "local"} {
  fsdp.param @w : tensor<8xf32> unit "w" init <constant, 0.0>
  fsdp.storage @s : tensor<8xf32> replicated over [] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %p = fsdp.load @s "parameter" : tensor<8xf32>
      %g = arith.constant dense<1.0> : tensor<8xf32>
      %scale = arith.constant dense<1.0> : tensor<f32>
      %ok = arith.constant dense<true> : tensor<i1>
      %lr = fsdp.learning_rate <sgd, lr = 0.1>
      // expected-error@below {{has a result that is not stored into storage 's', expected an 'fsdp.store' of each}}
      %p1 = fsdp.optimizer_step <sgd, lr = 0.1> @s %p, %g states() lr %lr scale %scale if %ok : tensor<8xf32> states 0
    }
  }
}
