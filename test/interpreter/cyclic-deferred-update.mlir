// Updates that stand behind the outputs of their step run during the next forward: each gather waits for the
// update of its own unit only, and no segment is joined.
// DEFINE: %{seeds} = %{python} %S/Inputs/seeds.py
// RUN: %{seeds} all 25 fsdp-run %s --steps=4 | FileCheck %s
// Two units of ten elements, each rank's gradient twice the parameter and the rate 1/16: each step takes a quarter.
// CHECK: step 1 total 40{{$}}
// CHECK: step 2 total 30{{$}}
// CHECK: step 3 total 22.5{{$}}
// CHECK: step 4 total 16.875{{$}}
// RUN: %{seeds} all 25 fsdp-run %s --steps=2 --segment=train,evaluate,train | FileCheck %s --check-prefix=DRAIN
// An evaluation sees the updates of the step before it.
// DRAIN: step 1 train total 40{{$}}
// DRAIN: step 1 evaluate total 30{{$}}
// DRAIN: step 1 train total 30{{$}}
// DRAIN: step 2 train total 22.5{{$}}

// One gather does not wait for its update.
// RUN: sed '/"gather b"/s/wait(%%used.b, %%updated.b)/wait(%%used.b)/' %s | %{seeds} some 25 fsdp-run - --steps=4 | FileCheck %s --check-prefix=AWAIT
// AWAIT: error: 'fsdp.launch' op '{{.*}} b' races with '{{.*}} b' on rank {{[01]}}: both use bytes of buffer 'b.{{.*}}'; let the later one wait
// AWAIT: note: '{{.*}} b' is in flight here, in segment '{{forward|update}}'

// An update does not wait for its gradient.
// RUN: sed '/"update a"/s/wait(%%reduced.a, /wait(/' %s | %{seeds} some 25 fsdp-run - --steps=4 | FileCheck %s --check-prefix=REDUCED
// REDUCED: error: 'fsdp.launch' op '{{update|reduce}} a' {{races with '(update|reduce) a' on rank [01]: both use|on rank [01] reads byte 0 of}} {{(bytes of )?}}buffer 'a.gradient.shard'
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.param @a : tensor<10xf32> unit "a" init <constant, 2.0>
  fsdp.storage @a.flat : tensor<16xf32> flat over ["fsdp"] states [] members [#fsdp.member<@a at 0>]
  fsdp.param @b : tensor<10xf32> unit "b" init <constant, 2.0>
  fsdp.storage @b.flat : tensor<16xf32> flat over ["fsdp"] states [] members [#fsdp.member<@b at 0>]
  fsdp.program @all role {} arena 832 {
    %state = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    %a = fsdp.buffer "a.parameter" persistent holds @a.flat "parameter" offset 128 : !fsdp.buffer<tensor<16xf32>>
    %b = fsdp.buffer "b.parameter" persistent holds @b.flat "parameter" offset 192 : !fsdp.buffer<tensor<16xf32>>
    %ga = fsdp.buffer "a.gradient" persistent offset 256 : !fsdp.buffer<tensor<10xf32>>
    %gb = fsdp.buffer "b.gradient" persistent offset 320 : !fsdp.buffer<tensor<10xf32>>
    %sa = fsdp.buffer "a.gradient.shard" persistent offset 384 : !fsdp.buffer<tensor<16xf32>>
    %sb = fsdp.buffer "b.gradient.shard" persistent offset 704 : !fsdp.buffer<tensor<16xf32>>
    %updated.a = fsdp.event "a.updated"
    %updated.b = fsdp.event "b.updated"
    %reduced.a = fsdp.event "a.reduced"
    %reduced.b = fsdp.event "b.reduced"
    %gathered.a = fsdp.event "a.gathered"
    %gathered.b = fsdp.event "b.gathered"
    %used.a = fsdp.event "a.used"
    %used.b = fsdp.event "b.used"
    fsdp.walk @train train [@forward, @update] times [1, 1]
    fsdp.walk @evaluate evaluate [@whole] times [1]
    fsdp.segment @forward train async next [@update] {
      %fa = fsdp.buffer "a.gathered" offset 448 : !fsdp.buffer<tensor<10xf32>>
      %fb = fsdp.buffer "b.gathered" offset 512 : !fsdp.buffer<tensor<10xf32>>
      %na = fsdp.buffer "a.total" offset 576 : !fsdp.buffer<tensor<f32>>
      %nb = fsdp.buffer "b.total" offset 640 : !fsdp.buffer<tensor<f32>>
      %t0 = fsdp.launch "gather a" on "gather" wait(%used.a, %updated.a) records(%gathered.a) ins(%a : !fsdp.buffer<tensor<16xf32>>) outs(%fa : !fsdp.buffer<tensor<10xf32>>) {
      ^bb0(%x: tensor<16xf32>):
        %y = fsdp.all_gather %x dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<10xf32>
        fsdp.yield %y : tensor<10xf32>
      }
      %t1 = fsdp.launch "gather b" on "gather" wait(%used.b, %updated.b) records(%gathered.b) ins(%b : !fsdp.buffer<tensor<16xf32>>) outs(%fb : !fsdp.buffer<tensor<10xf32>>) {
      ^bb0(%x: tensor<16xf32>):
        %y = fsdp.all_gather %x dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<10xf32>
        fsdp.yield %y : tensor<10xf32>
      }
      %t2 = fsdp.launch "use a" on "compute" wait(%t0) ins(%fa : !fsdp.buffer<tensor<10xf32>>) outs(%na : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%x: tensor<10xf32>):
        %y = nn.reduce sum "i ->" %x : tensor<10xf32> -> tensor<f32>
        fsdp.yield %y : tensor<f32>
      }
      %t3 = fsdp.launch "use b" on "compute" wait(%t1) ins(%fb : !fsdp.buffer<tensor<10xf32>>) outs(%nb : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%x: tensor<10xf32>):
        %y = nn.reduce sum "i ->" %x : tensor<10xf32> -> tensor<f32>
        fsdp.yield %y : tensor<f32>
      }
      %t4 = fsdp.launch "log" on "compute" ins(%na, %nb : !fsdp.buffer<tensor<f32>>, !fsdp.buffer<tensor<f32>>) {
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %z = arith.addf %x, %y : tensor<f32>
        fsdp.output "total" %z
        fsdp.yield
      }
      %t5 = fsdp.launch "gradient a" on "compute" records(%used.a) ins(%fa : !fsdp.buffer<tensor<10xf32>>) outs(%ga : !fsdp.buffer<tensor<10xf32>>) {
      ^bb0(%x: tensor<10xf32>):
        %y = arith.addf %x, %x : tensor<10xf32>
        fsdp.yield %y : tensor<10xf32>
      }
      %t6 = fsdp.launch "gradient b" on "compute" records(%used.b) ins(%fb : !fsdp.buffer<tensor<10xf32>>) outs(%gb : !fsdp.buffer<tensor<10xf32>>) {
      ^bb0(%x: tensor<10xf32>):
        %y = arith.addf %x, %x : tensor<10xf32>
        fsdp.yield %y : tensor<10xf32>
      }
    }
    fsdp.segment @update train async next [@forward, @whole] {
      %t0 = fsdp.launch "reduce a" on "reduce" wait(%used.a, %updated.a) records(%reduced.a) ins(%ga : !fsdp.buffer<tensor<10xf32>>) outs(%sa : !fsdp.buffer<tensor<16xf32>>) {
      ^bb0(%x: tensor<10xf32>):
        %y = fsdp.reduce_scatter %x dim 0 over ["fsdp"] : tensor<10xf32> -> tensor<16xf32>
        fsdp.yield %y : tensor<16xf32>
      }
      %t1 = fsdp.launch "reduce b" on "reduce" wait(%used.b, %updated.b) records(%reduced.b) ins(%gb : !fsdp.buffer<tensor<10xf32>>) outs(%sb : !fsdp.buffer<tensor<16xf32>>) {
      ^bb0(%x: tensor<10xf32>):
        %y = fsdp.reduce_scatter %x dim 0 over ["fsdp"] : tensor<10xf32> -> tensor<16xf32>
        fsdp.yield %y : tensor<16xf32>
      }
      %t2 = fsdp.launch "update a" on "update" wait(%reduced.a, %gathered.a) records(%updated.a) ins(%a, %sa : !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<16xf32>>) outs(%a : !fsdp.buffer<tensor<16xf32>>) step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
      ^bb0(%x: tensor<16xf32>, %y: tensor<16xf32>):
        %ok = arith.constant dense<true> : tensor<i1>
        %one = arith.constant dense<1.0> : tensor<f32>
        %lr = arith.constant dense<0.0625> : tensor<f32>
        %z = fsdp.optimizer_step <sgd, lr = 0.0625> @a.flat %x, %y states() lr %lr scale %one if %ok : tensor<16xf32> states 0
        fsdp.yield %z : tensor<16xf32>
      }
      %t3 = fsdp.launch "update b" on "update" wait(%reduced.b, %gathered.b) records(%updated.b) ins(%b, %sb : !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<16xf32>>) outs(%b : !fsdp.buffer<tensor<16xf32>>) step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
      ^bb0(%x: tensor<16xf32>, %y: tensor<16xf32>):
        %ok = arith.constant dense<true> : tensor<i1>
        %one = arith.constant dense<1.0> : tensor<f32>
        %lr = arith.constant dense<0.0625> : tensor<f32>
        %z = fsdp.optimizer_step <sgd, lr = 0.0625> @b.flat %x, %y states() lr %lr scale %one if %ok : tensor<16xf32> states 0
        fsdp.yield %z : tensor<16xf32>
      }
      %t4 = fsdp.launch "advance" on "update" step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
        %ok = arith.constant dense<true> : tensor<i1>
        fsdp.advance if %ok
        fsdp.yield
      }
    }
    fsdp.segment @whole evaluate next [@forward, @whole] {
      %fa = fsdp.buffer "a.gathered" offset 448 : !fsdp.buffer<tensor<10xf32>>
      %fb = fsdp.buffer "b.gathered" offset 512 : !fsdp.buffer<tensor<10xf32>>
      %na = fsdp.buffer "a.total" offset 576 : !fsdp.buffer<tensor<f32>>
      %nb = fsdp.buffer "b.total" offset 640 : !fsdp.buffer<tensor<f32>>
      %t0 = fsdp.launch "gather a" on "gather" wait(%updated.a) ins(%a : !fsdp.buffer<tensor<16xf32>>) outs(%fa : !fsdp.buffer<tensor<10xf32>>) {
      ^bb0(%x: tensor<16xf32>):
        %y = fsdp.all_gather %x dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<10xf32>
        fsdp.yield %y : tensor<10xf32>
      }
      %t1 = fsdp.launch "gather b" on "gather" wait(%updated.b) ins(%b : !fsdp.buffer<tensor<16xf32>>) outs(%fb : !fsdp.buffer<tensor<10xf32>>) {
      ^bb0(%x: tensor<16xf32>):
        %y = fsdp.all_gather %x dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<10xf32>
        fsdp.yield %y : tensor<10xf32>
      }
      %t2 = fsdp.launch "use a" on "compute" wait(%t0) ins(%fa : !fsdp.buffer<tensor<10xf32>>) outs(%na : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%x: tensor<10xf32>):
        %y = nn.reduce sum "i ->" %x : tensor<10xf32> -> tensor<f32>
        fsdp.yield %y : tensor<f32>
      }
      %t3 = fsdp.launch "use b" on "compute" wait(%t1) ins(%fb : !fsdp.buffer<tensor<10xf32>>) outs(%nb : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%x: tensor<10xf32>):
        %y = nn.reduce sum "i ->" %x : tensor<10xf32> -> tensor<f32>
        fsdp.yield %y : tensor<f32>
      }
      %t4 = fsdp.launch "log" on "compute" ins(%na, %nb : !fsdp.buffer<tensor<f32>>, !fsdp.buffer<tensor<f32>>) {
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %z = arith.addf %x, %y : tensor<f32>
        fsdp.output "total" %z
        fsdp.yield
      }
    }
  }
}
