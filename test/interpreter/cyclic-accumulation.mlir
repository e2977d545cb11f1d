// Four microbatches, each a run of a segment, and an update. No segment is joined: a launch waits for those of
// earlier segments by events, and in whatever order the streams run the result is that of the plain step.
// DEFINE: %{seeds} = %{python} %S/Inputs/seeds.py
// DEFINE: %{data} = --inputs=%{golden}/linear/10-5-3.data.safetensors
// RUN: split-file %s %t
// RUN: fsdp-run %t/plain.mlir %{data} --steps=3 --outputs=%t/plain.safetensors | FileCheck %s
// RUN: %{seeds} all 25 fsdp-run %t/cyclic.mlir %{data} --steps=3 --outputs=%t/cyclic.safetensors | FileCheck %s
// RUN: %{python} %S/Inputs/same_weights.py %t/plain.safetensors %t/cyclic.safetensors 1e-12
// CHECK: step 1 loss 0.84506307542324{{[0-9]+}}
// CHECK: step 2 loss 22.26070869927144{{[0-9]+}}
// CHECK: step 3 loss 0.69939322315244{{[0-9]+}}

// The driver waits for all of a step before it evaluates: each evaluation sees the step's update.
// RUN: fsdp-run %t/plain.mlir %{data} --steps=2 --segment=train,evaluate | FileCheck %s --check-prefix=EVALUATE
// RUN: %{seeds} all 25 fsdp-run %t/cyclic.mlir %{data} --steps=2 --segment=train,evaluate | FileCheck %s --check-prefix=EVALUATE
// EVALUATE: step 1 train loss
// EVALUATE: step 1 evaluate total [[FIRST:.*]]
// EVALUATE-NOT: step 2 evaluate total [[FIRST]]
// EVALUATE: step 2 evaluate total

// An await is dropped: the next step gathers while the update runs.
// RUN: sed 's/wait(%%updated, %%consumed)/wait(%%consumed)/' %t/cyclic.mlir | %{seeds} some 25 fsdp-run - %{data} --steps=3 | FileCheck %s --check-prefix=AWAIT
// AWAIT: error: 'fsdp.launch' op '{{update|gather}}' races with '{{update|gather}}' on rank {{[01]}}: both use bytes of buffer 'w.parameter'; let the later one wait
// AWAIT: note: '{{update|gather}}' is in flight here, in segment '{{first|update}}'

// Nothing records the event: who awaits it awaits nothing.
// RUN: sed 's/ records(%%updated)//' %t/cyclic.mlir | %{seeds} some 25 fsdp-run - %{data} --steps=3 | FileCheck %s --check-prefix=AWAIT

// Only the first microbatch says when it is done with its inputs.
// RUN: sed '/"loss more"/s/ records(%%consumed)//' %t/cyclic.mlir | %{seeds} some 25 fsdp-run - %{data} | FileCheck %s --check-prefix=CONSUMED
// CONSUMED: error: 'fsdp.launch' op '{{.*}}' {{races with|on rank}}

// The segment that writes the accumulators first is left out.
// RUN: sed 's/\[@first, @middle, @last, @update\] times \[1, 2, 1, 1\]/[@middle, @last, @update] times [3, 1, 1]/; s/next \[@first, @whole\] {/next [@middle, @whole] {/' %t/cyclic.mlir | %{seeds} some 2 fsdp-run - %{data} | FileCheck %s --check-prefix=UNWRITTEN
// UNWRITTEN: refused with 2 of 2 seeds
// UNWRITTEN: error: 'fsdp.launch' op 'gradient more' on rank {{[01]}} reads byte 0 of buffer 'w.accumulator', which holds no value at that point: it was not written, or was overwritten

//--- cyclic.mlir
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.param @w : tensor<5xf32> unit "w" init <constant, 2.0>
  fsdp.storage @w.flat : tensor<16xf32> flat over ["fsdp"] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @all role {} arena 640 {
    %state = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    %p = fsdp.buffer "w.parameter" persistent holds @w.flat "parameter" offset 128 : !fsdp.buffer<tensor<16xf32>>
    %acc = fsdp.buffer "w.accumulator" persistent holds @w.flat "accumulator" offset 192 : !fsdp.buffer<tensor<5xf32>>
    %sum = fsdp.buffer "loss.accumulator" persistent offset 256 : !fsdp.buffer<tensor<f32>>
    %updated = fsdp.event "w.updated"
    %consumed = fsdp.event "consumed"
    %summed = fsdp.event "summed"
    fsdp.walk @train train [@first, @middle, @last, @update] times [1, 2, 1, 1]
    fsdp.walk @evaluate evaluate [@whole] times [1]
    fsdp.segment @first train async next [@middle] {
      %x = fsdp.buffer "x" offset 320 : !fsdp.buffer<tensor<1x5xf32>>
      %f = fsdp.buffer "w.gathered" offset 384 : !fsdp.buffer<tensor<5xf32>>
      %t0 = fsdp.launch "load" on "input" wait(%consumed) outs(%x : !fsdp.buffer<tensor<1x5xf32>>) {
        %a = fsdp.input "x" sample_dim 0 shard_of 4 over [] microbatches 4 : tensor<1x5xf32>
        fsdp.yield %a : tensor<1x5xf32>
      }
      %t1 = fsdp.launch "gather" on "gather" wait(%updated, %consumed) ins(%p : !fsdp.buffer<tensor<16xf32>>) outs(%f : !fsdp.buffer<tensor<5xf32>>) {
      ^bb0(%a: tensor<16xf32>):
        %b = fsdp.all_gather %a dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<5xf32>
        fsdp.yield %b : tensor<5xf32>
      }
      %t2 = fsdp.launch "gradient" on "compute" wait(%t0) records(%summed) ins(%x : !fsdp.buffer<tensor<1x5xf32>>) outs(%acc : !fsdp.buffer<tensor<5xf32>>) {
      ^bb0(%a: tensor<1x5xf32>):
        %b = nn.reduce sum "b i -> i" %a : tensor<1x5xf32> -> tensor<5xf32>
        fsdp.yield %b : tensor<5xf32>
      }
      %t3 = fsdp.launch "loss" on "compute" wait(%t0, %t1) records(%consumed) ins(%x, %f : !fsdp.buffer<tensor<1x5xf32>>, !fsdp.buffer<tensor<5xf32>>) outs(%sum : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<1x5xf32>, %b: tensor<5xf32>):
        %r = nn.einsum "bi,i->b" %a, %b : (tensor<1x5xf32>, tensor<5xf32>) -> tensor<1xf32>
        %c = nn.reduce sum "b ->" %r : tensor<1xf32> -> tensor<f32>
        fsdp.yield %c : tensor<f32>
      }
    }
    fsdp.segment @middle train async next [@middle, @last] {
      %x = fsdp.buffer "x" offset 320 : !fsdp.buffer<tensor<1x5xf32>>
      %f = fsdp.buffer "w.gathered" offset 384 : !fsdp.buffer<tensor<5xf32>>
      %t0 = fsdp.launch "load" on "input" wait(%consumed) outs(%x : !fsdp.buffer<tensor<1x5xf32>>) {
        %a = fsdp.input "x" sample_dim 0 shard_of 4 over [] microbatches 4 : tensor<1x5xf32>
        fsdp.yield %a : tensor<1x5xf32>
      }
      %t1 = fsdp.launch "gather" on "gather" wait(%consumed) ins(%p : !fsdp.buffer<tensor<16xf32>>) outs(%f : !fsdp.buffer<tensor<5xf32>>) {
      ^bb0(%a: tensor<16xf32>):
        %b = fsdp.all_gather %a dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<5xf32>
        fsdp.yield %b : tensor<5xf32>
      }
      %t2 = fsdp.launch "gradient more" on "compute" wait(%t0) records(%summed) ins(%x, %acc : !fsdp.buffer<tensor<1x5xf32>>, !fsdp.buffer<tensor<5xf32>>) outs(%acc : !fsdp.buffer<tensor<5xf32>>) {
      ^bb0(%a: tensor<1x5xf32>, %s: tensor<5xf32>):
        %b = nn.reduce sum "b i -> i" %a : tensor<1x5xf32> -> tensor<5xf32>
        %c = arith.addf %s, %b : tensor<5xf32>
        fsdp.yield %c : tensor<5xf32>
      }
      %t3 = fsdp.launch "loss more" on "compute" wait(%t0, %t1) records(%consumed) ins(%x, %f, %sum : !fsdp.buffer<tensor<1x5xf32>>, !fsdp.buffer<tensor<5xf32>>, !fsdp.buffer<tensor<f32>>) outs(%sum : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<1x5xf32>, %b: tensor<5xf32>, %s: tensor<f32>):
        %r = nn.einsum "bi,i->b" %a, %b : (tensor<1x5xf32>, tensor<5xf32>) -> tensor<1xf32>
        %c = nn.reduce sum "b ->" %r : tensor<1xf32> -> tensor<f32>
        %d = arith.addf %s, %c : tensor<f32>
        fsdp.yield %d : tensor<f32>
      }
    }
    fsdp.segment @last train async next [@update] {
      %x = fsdp.buffer "x" offset 320 : !fsdp.buffer<tensor<1x5xf32>>
      %f = fsdp.buffer "w.gathered" offset 384 : !fsdp.buffer<tensor<5xf32>>
      %t0 = fsdp.launch "load" on "input" wait(%consumed) outs(%x : !fsdp.buffer<tensor<1x5xf32>>) {
        %a = fsdp.input "x" sample_dim 0 shard_of 4 over [] microbatches 4 : tensor<1x5xf32>
        fsdp.yield %a : tensor<1x5xf32>
      }
      %t1 = fsdp.launch "gather" on "gather" wait(%consumed) ins(%p : !fsdp.buffer<tensor<16xf32>>) outs(%f : !fsdp.buffer<tensor<5xf32>>) {
      ^bb0(%a: tensor<16xf32>):
        %b = fsdp.all_gather %a dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<5xf32>
        fsdp.yield %b : tensor<5xf32>
      }
      %t2 = fsdp.launch "gradient more" on "compute" wait(%t0) records(%summed) ins(%x, %acc : !fsdp.buffer<tensor<1x5xf32>>, !fsdp.buffer<tensor<5xf32>>) outs(%acc : !fsdp.buffer<tensor<5xf32>>) {
      ^bb0(%a: tensor<1x5xf32>, %s: tensor<5xf32>):
        %b = nn.reduce sum "b i -> i" %a : tensor<1x5xf32> -> tensor<5xf32>
        %c = arith.addf %s, %b : tensor<5xf32>
        fsdp.yield %c : tensor<5xf32>
      }
      %t3 = fsdp.launch "loss more" on "compute" wait(%t0, %t1) records(%consumed) ins(%x, %f, %sum : !fsdp.buffer<tensor<1x5xf32>>, !fsdp.buffer<tensor<5xf32>>, !fsdp.buffer<tensor<f32>>) outs(%sum : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<1x5xf32>, %b: tensor<5xf32>, %s: tensor<f32>):
        %r = nn.einsum "bi,i->b" %a, %b : (tensor<1x5xf32>, tensor<5xf32>) -> tensor<1xf32>
        %c = nn.reduce sum "b ->" %r : tensor<1xf32> -> tensor<f32>
        %d = arith.addf %s, %c : tensor<f32>
        fsdp.yield %d : tensor<f32>
      }
      %t4 = fsdp.launch "log" on "compute" ins(%sum : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<f32>):
        fsdp.output "loss" %a
        fsdp.yield
      }
    }
    fsdp.segment @update train async next [@first, @whole] {
      %gs = fsdp.buffer "w.gradient" offset 448 : !fsdp.buffer<tensor<16xf32>>
      %t0 = fsdp.launch "reduce" on "reduce" wait(%summed) ins(%acc : !fsdp.buffer<tensor<5xf32>>) outs(%gs : !fsdp.buffer<tensor<16xf32>>) {
      ^bb0(%a: tensor<5xf32>):
        %b = fsdp.reduce_scatter %a dim 0 over ["fsdp"] : tensor<5xf32> -> tensor<16xf32>
        fsdp.yield %b : tensor<16xf32>
      }
      %t1 = fsdp.launch "update" on "compute" wait(%t0) records(%updated) ins(%p, %gs : !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<16xf32>>) outs(%p : !fsdp.buffer<tensor<16xf32>>) step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
      ^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>):
        %ok = arith.constant dense<true> : tensor<i1>
        %one = arith.constant dense<1.0> : tensor<f32>
        %lr = arith.constant dense<0.25> : tensor<f32>
        %r = fsdp.optimizer_step <sgd, lr = 0.25> @w.flat %a, %b states() lr %lr scale %one if %ok : tensor<16xf32> states 0
        fsdp.yield %r : tensor<16xf32>
      }
      %t2 = fsdp.launch "advance" on "compute" step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
        %ok = arith.constant dense<true> : tensor<i1>
        fsdp.advance if %ok
        fsdp.yield
      }
    }
    fsdp.segment @whole evaluate next [@first, @whole] {
      %f = fsdp.buffer "w.gathered" offset 384 : !fsdp.buffer<tensor<5xf32>>
      %total = fsdp.buffer "total" offset 512 : !fsdp.buffer<tensor<f32>>
      %t0 = fsdp.launch "gather" on "gather" wait(%updated, %consumed) ins(%p : !fsdp.buffer<tensor<16xf32>>) outs(%f : !fsdp.buffer<tensor<5xf32>>) {
      ^bb0(%a: tensor<16xf32>):
        %b = fsdp.all_gather %a dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<5xf32>
        fsdp.yield %b : tensor<5xf32>
      }
      %t1 = fsdp.launch "sum" on "compute" wait(%t0) ins(%f : !fsdp.buffer<tensor<5xf32>>) outs(%total : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<5xf32>):
        %b = nn.reduce sum "i ->" %a : tensor<5xf32> -> tensor<f32>
        fsdp.yield %b : tensor<f32>
      }
      %t2 = fsdp.launch "log" on "compute" ins(%total : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<f32>):
        fsdp.output "total" %a
        fsdp.yield
      }
    }
  }
}

//--- plain.mlir
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.param @w : tensor<5xf32> unit "w" init <constant, 2.0>
  fsdp.storage @w.flat : tensor<16xf32> flat over ["fsdp"] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train, @evaluate] {
      %x = fsdp.input "x" sample_dim 0 : tensor<4x5xf32>
      %p = fsdp.load @w.flat "parameter" : tensor<16xf32>
      %f = fsdp.all_gather %p dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<5xf32>
      %rows = nn.einsum "bi,i->b" %x, %f : (tensor<4x5xf32>, tensor<5xf32>) -> tensor<4xf32>
      %loss = nn.reduce sum "b ->" %rows : tensor<4xf32> -> tensor<f32>
      fsdp.output "loss" %loss
      %g = nn.reduce sum "b i -> i" %x : tensor<4x5xf32> -> tensor<5xf32>
      %gs = fsdp.reduce_scatter %g dim 0 over ["fsdp"] : tensor<5xf32> -> tensor<16xf32>
      %ok = arith.constant dense<true> : tensor<i1>
      %one = arith.constant dense<1.0> : tensor<f32>
      %lr = arith.constant dense<0.25> : tensor<f32>
      %r = fsdp.optimizer_step <sgd, lr = 0.25> @w.flat %p, %gs states() lr %lr scale %one if %ok : tensor<16xf32> states 0
      fsdp.store %r, @w.flat "parameter" : tensor<16xf32>
      fsdp.advance if %ok
    }
    fsdp.segment @evaluate evaluate next [@train, @evaluate] {
      %p = fsdp.load @w.flat "parameter" : tensor<16xf32>
      %f = fsdp.all_gather %p dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<5xf32>
      %total = nn.reduce sum "i ->" %f : tensor<5xf32> -> tensor<f32>
      fsdp.output "total" %total
    }
  }
}
