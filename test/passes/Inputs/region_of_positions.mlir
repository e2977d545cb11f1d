// Causal attention, and a manual region over `context` that takes its result by positions.
fsdp.mesh @mesh <["fsdp"=2, "context"=2]>
fsdp.param @table : tensor<11x8xf32> unit "u" init <normal, 0.5>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %ids = fsdp.input "tokens" sample_dim 0 {fsdp.tokens = 11 : i64} : tensor<8x8xi32>
  %to = fsdp.input "targets" sample_dim 0 {fsdp.targets = 11 : i64} : tensor<8x8xi32>
  %table = fsdp.read @table : tensor<11x8xf32>
  %rows = nn.embedding %table, %ids : tensor<11x8xf32>, tensor<8x8xi32> -> tensor<8x8x8xf32>
  %q = nn.rearrange "b t (h d) -> b h t d" %rows {h = 1} : tensor<8x8x8xf32> -> tensor<8x1x8x8xf32>
  %a, %l = nn.attention %q, %q, %q scale 0.5 causal : (tensor<8x1x8x8xf32>, tensor<8x1x8x8xf32>, tensor<8x1x8x8xf32>) -> (tensor<8x1x8x8xf32>, tensor<8x1x8xf32>)
  %o = nn.rearrange "b h t d -> b t (h d)" %a : tensor<8x1x8x8xf32> -> tensor<8x8x8xf32> loc("residual")
  %y = fsdp.manual(%o) over ["context"] in [#fsdp.sharding<@mesh, [{}, {"context"}, {}]>]
      out [#fsdp.sharding<@mesh, [{}, {"context"}, {}]>] : (tensor<8x8x8xf32>) -> tensor<8x8x8xf32> {
  ^bb0(%x: tensor<8x4x8xf32>):
    %p = math.tanh %x : tensor<8x4x8xf32>
    fsdp.yield %p : tensor<8x4x8xf32>
  }
  %logits = nn.einsum "btd,vd->btv" %y, %table : (tensor<8x8x8xf32>, tensor<11x8xf32>) -> tensor<8x8x11xf32>
  %losses, %lse = nn.cross_entropy %logits, %to : tensor<8x8x11xf32>, tensor<8x8xi32> -> tensor<8x8xf32>, tensor<8x8xf32>
  %total = nn.reduce sum "b t ->" %losses : tensor<8x8xf32> -> tensor<f64>
  %weight = arith.constant dense<64.0> : tensor<f64>
  fsdp.loss %total over %weight
}
