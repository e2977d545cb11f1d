// Three microbatches of a model with dropout in one segment, forward of one before backward of another; 10 samples on two
// ranks are 5 each, in parts of 2. Every op that depends on the microbatch has its number.
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.param @in : tensor<5x4xf32> unit "in" init <normal, 0.5>
  fsdp.param @out : tensor<4x3xf32> unit "out" init <normal, 0.5>
  fsdp.storage @in.flat : tensor<16xf32> flat over ["fsdp"] states [] members [#fsdp.member<@in at 0>]
  fsdp.storage @out.flat : tensor<16xf32> flat over ["fsdp"] states [] members [#fsdp.member<@out at 0>]
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train, @evaluate] {
      %in.shard = fsdp.load @in.flat "parameter" : tensor<16xf32>
      %in.flat = fsdp.all_gather %in.shard dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<20xf32>
      %in = fsdp.view %in.flat at 0 : tensor<20xf32> -> tensor<5x4xf32>
      %out.shard = fsdp.load @out.flat "parameter" : tensor<16xf32>
      %out.flat = fsdp.all_gather %out.shard dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<12xf32>
      %out = fsdp.view %out.flat at 0 : tensor<12xf32> -> tensor<4x3xf32>
      // Forward of 0.
      %x0 = fsdp.input "x" sample_dim 0 shard_of 10 over ["fsdp"] microbatches 3 at 0 : tensor<2x5xf32>
      %y0 = fsdp.input "y" sample_dim 0 shard_of 10 over ["fsdp"] microbatches 3 at 0 : tensor<2x3xf32>
      %n0 = fsdp.microbatch_samples of 10 over ["fsdp"] microbatches 3 at 0
      %h0 = nn.einsum "bi,ih->bh" %x0, %in : (tensor<2x5xf32>, tensor<5x4xf32>) -> tensor<2x4xf32>
      %d0 = fsdp.dropout %h0 rate 0.3 name "drop" part_of [10, 4] over [["fsdp"], []] microbatches 3 along 0 at 0 : tensor<2x4xf32>
      %z0 = nn.einsum "bh,ho->bo" %d0, %out : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
      %e0 = arith.subf %z0, %y0 : tensor<2x3xf32>
      %q0 = arith.mulf %e0, %e0 : tensor<2x3xf32>
      %c0 = fsdp.mask_samples %q0, %n0 dim 0 fill 0.0 : tensor<2x3xf32>
      %loss0 = nn.reduce sum "b o ->" %c0 : tensor<2x3xf32> -> tensor<f64>
      // Forward of 1.
      %x1 = fsdp.input "x" sample_dim 0 shard_of 10 over ["fsdp"] microbatches 3 at 1 : tensor<2x5xf32>
      %y1 = fsdp.input "y" sample_dim 0 shard_of 10 over ["fsdp"] microbatches 3 at 1 : tensor<2x3xf32>
      %n1 = fsdp.microbatch_samples of 10 over ["fsdp"] microbatches 3 at 1
      %h1 = nn.einsum "bi,ih->bh" %x1, %in : (tensor<2x5xf32>, tensor<5x4xf32>) -> tensor<2x4xf32>
      %d1 = fsdp.dropout %h1 rate 0.3 name "drop" part_of [10, 4] over [["fsdp"], []] microbatches 3 along 0 at 1 : tensor<2x4xf32>
      %z1 = nn.einsum "bh,ho->bo" %d1, %out : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
      %e1 = arith.subf %z1, %y1 : tensor<2x3xf32>
      %q1 = arith.mulf %e1, %e1 : tensor<2x3xf32>
      %c1 = fsdp.mask_samples %q1, %n1 dim 0 fill 0.0 : tensor<2x3xf32>
      %loss1 = nn.reduce sum "b o ->" %c1 : tensor<2x3xf32> -> tensor<f64>
      %losses1 = arith.addf %loss0, %loss1 : tensor<f64>
      // Backward of 0.
      %dz0 = arith.addf %e0, %e0 : tensor<2x3xf32>
      %dh0 = nn.einsum "bo,ho->bh" %dz0, %out : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
      %dzc0 = fsdp.mask_samples %dz0, %n0 dim 0 fill 0.0 : tensor<2x3xf32>
      %dout0 = nn.einsum "bh,bo->ho" %d0, %dzc0 : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
      %dout0.flat = fsdp.flatten %dout0 : (tensor<4x3xf32>) -> tensor<12xf32>
      %dout0.shard = fsdp.reduce_scatter %dout0.flat dim 0 over ["fsdp"] : tensor<12xf32> -> tensor<16xf32>
      %dd0 = fsdp.dropout %dh0 rate 0.3 name "drop" part_of [10, 4] over [["fsdp"], []] microbatches 3 along 0 at 0 : tensor<2x4xf32>
      %ddc0 = fsdp.mask_samples %dd0, %n0 dim 0 fill 0.0 : tensor<2x4xf32>
      %din0 = nn.einsum "bi,bh->ih" %x0, %ddc0 : (tensor<2x5xf32>, tensor<2x4xf32>) -> tensor<5x4xf32>
      %din0.flat = fsdp.flatten %din0 : (tensor<5x4xf32>) -> tensor<20xf32>
      %din0.shard = fsdp.reduce_scatter %din0.flat dim 0 over ["fsdp"] : tensor<20xf32> -> tensor<16xf32>
      // Forward of 2.
      %x2 = fsdp.input "x" sample_dim 0 shard_of 10 over ["fsdp"] microbatches 3 at 2 : tensor<2x5xf32>
      %y2 = fsdp.input "y" sample_dim 0 shard_of 10 over ["fsdp"] microbatches 3 at 2 : tensor<2x3xf32>
      %n2 = fsdp.microbatch_samples of 10 over ["fsdp"] microbatches 3 at 2
      %h2 = nn.einsum "bi,ih->bh" %x2, %in : (tensor<2x5xf32>, tensor<5x4xf32>) -> tensor<2x4xf32>
      %d2 = fsdp.dropout %h2 rate 0.3 name "drop" part_of [10, 4] over [["fsdp"], []] microbatches 3 along 0 at 2 : tensor<2x4xf32>
      %z2 = nn.einsum "bh,ho->bo" %d2, %out : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
      %e2 = arith.subf %z2, %y2 : tensor<2x3xf32>
      %q2 = arith.mulf %e2, %e2 : tensor<2x3xf32>
      %c2 = fsdp.mask_samples %q2, %n2 dim 0 fill 0.0 : tensor<2x3xf32>
      %loss2 = nn.reduce sum "b o ->" %c2 : tensor<2x3xf32> -> tensor<f64>
      %losses2 = arith.addf %losses1, %loss2 : tensor<f64>
      // Backward of 1.
      %dz1 = arith.addf %e1, %e1 : tensor<2x3xf32>
      %dh1 = nn.einsum "bo,ho->bh" %dz1, %out : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
      %dzc1 = fsdp.mask_samples %dz1, %n1 dim 0 fill 0.0 : tensor<2x3xf32>
      %dout1 = nn.einsum "bh,bo->ho" %d1, %dzc1 : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
      %dout1.flat = fsdp.flatten %dout1 : (tensor<4x3xf32>) -> tensor<12xf32>
      %dout1.shard = fsdp.reduce_scatter %dout1.flat dim 0 over ["fsdp"] : tensor<12xf32> -> tensor<16xf32>
      %dd1 = fsdp.dropout %dh1 rate 0.3 name "drop" part_of [10, 4] over [["fsdp"], []] microbatches 3 along 0 at 1 : tensor<2x4xf32>
      %ddc1 = fsdp.mask_samples %dd1, %n1 dim 0 fill 0.0 : tensor<2x4xf32>
      %din1 = nn.einsum "bi,bh->ih" %x1, %ddc1 : (tensor<2x5xf32>, tensor<2x4xf32>) -> tensor<5x4xf32>
      %din1.flat = fsdp.flatten %din1 : (tensor<5x4xf32>) -> tensor<20xf32>
      %din1.shard = fsdp.reduce_scatter %din1.flat dim 0 over ["fsdp"] : tensor<20xf32> -> tensor<16xf32>
      %dout.sum1 = arith.addf %dout0.shard, %dout1.shard : tensor<16xf32>
      %din.sum1 = arith.addf %din0.shard, %din1.shard : tensor<16xf32>
      // Backward of 2.
      %dz2 = arith.addf %e2, %e2 : tensor<2x3xf32>
      %dh2 = nn.einsum "bo,ho->bh" %dz2, %out : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
      %dzc2 = fsdp.mask_samples %dz2, %n2 dim 0 fill 0.0 : tensor<2x3xf32>
      %dout2 = nn.einsum "bh,bo->ho" %d2, %dzc2 : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
      %dout2.flat = fsdp.flatten %dout2 : (tensor<4x3xf32>) -> tensor<12xf32>
      %dout2.shard = fsdp.reduce_scatter %dout2.flat dim 0 over ["fsdp"] : tensor<12xf32> -> tensor<16xf32>
      %dd2 = fsdp.dropout %dh2 rate 0.3 name "drop" part_of [10, 4] over [["fsdp"], []] microbatches 3 along 0 at 2 : tensor<2x4xf32>
      %ddc2 = fsdp.mask_samples %dd2, %n2 dim 0 fill 0.0 : tensor<2x4xf32>
      %din2 = nn.einsum "bi,bh->ih" %x2, %ddc2 : (tensor<2x5xf32>, tensor<2x4xf32>) -> tensor<5x4xf32>
      %din2.flat = fsdp.flatten %din2 : (tensor<5x4xf32>) -> tensor<20xf32>
      %din2.shard = fsdp.reduce_scatter %din2.flat dim 0 over ["fsdp"] : tensor<20xf32> -> tensor<16xf32>
      %dout.sum2 = arith.addf %dout.sum1, %dout2.shard : tensor<16xf32>
      %din.sum2 = arith.addf %din.sum1, %din2.shard : tensor<16xf32>
      // Update.
      %total = fsdp.all_reduce sum %losses2 over ["fsdp"] : tensor<f64>
      %weight = arith.constant dense<30.0> : tensor<f64>
      %mean = arith.divf %total, %weight : tensor<f64>
      %loss = arith.truncf %mean : tensor<f64> to tensor<f32>
      fsdp.output "loss" %loss
      %out.squares = fsdp.square_sum %dout.sum2 : tensor<16xf32>
      %in.squares = fsdp.square_sum %din.sum2 : tensor<16xf32>
      %squares.shard = arith.addf %out.squares, %in.squares : tensor<f64>
      %squares = fsdp.all_reduce sum %squares.shard over ["fsdp"] : tensor<f64>
      %one = arith.constant dense<1.0> : tensor<f64>
      %share = arith.divf %one, %weight : tensor<f64>
      %scale = arith.truncf %share : tensor<f64> to tensor<f32>
      %root = math.sqrt %squares : tensor<f64>
      %norm.sum = arith.truncf %root : tensor<f64> to tensor<f32>
      %norm = arith.mulf %norm.sum, %scale : tensor<f32>
      fsdp.output "grad_norm" %norm
      %lr = fsdp.learning_rate <sgd, lr = 0.1>
      fsdp.output "lr" %lr
      %ok = fsdp.acceptable %loss norm %norm
      %out.new = fsdp.optimizer_step <sgd, lr = 0.1> @out.flat %out.shard, %dout.sum2 states() lr %lr scale %scale if %ok : tensor<16xf32> states 0
      fsdp.store %out.new, @out.flat "parameter" : tensor<16xf32>
      %in.new = fsdp.optimizer_step <sgd, lr = 0.1> @in.flat %in.shard, %din.sum2 states() lr %lr scale %scale if %ok : tensor<16xf32> states 0
      fsdp.store %in.new, @in.flat "parameter" : tensor<16xf32>
      fsdp.advance if %ok
    }
    fsdp.segment @evaluate evaluate next [@train, @evaluate] {
      %in.shard = fsdp.load @in.flat "parameter" : tensor<16xf32>
      %in.flat = fsdp.all_gather %in.shard dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<20xf32>
      %in = fsdp.view %in.flat at 0 : tensor<20xf32> -> tensor<5x4xf32>
      %out.shard = fsdp.load @out.flat "parameter" : tensor<16xf32>
      %out.flat = fsdp.all_gather %out.shard dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<12xf32>
      %out = fsdp.view %out.flat at 0 : tensor<12xf32> -> tensor<4x3xf32>
      // Forward of 0.
      %x0 = fsdp.input "x" sample_dim 0 shard_of 10 over ["fsdp"] microbatches 3 at 0 : tensor<2x5xf32>
      %y0 = fsdp.input "y" sample_dim 0 shard_of 10 over ["fsdp"] microbatches 3 at 0 : tensor<2x3xf32>
      %n0 = fsdp.microbatch_samples of 10 counted over ["fsdp"] microbatches 3 at 0
      %h0 = nn.einsum "bi,ih->bh" %x0, %in : (tensor<2x5xf32>, tensor<5x4xf32>) -> tensor<2x4xf32>
      %z0 = nn.einsum "bh,ho->bo" %h0, %out : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
      %e0 = arith.subf %z0, %y0 : tensor<2x3xf32>
      %q0 = arith.mulf %e0, %e0 : tensor<2x3xf32>
      %c0 = fsdp.mask_samples %q0, %n0 dim 0 fill 0.0 : tensor<2x3xf32>
      %loss0 = nn.reduce sum "b o ->" %c0 : tensor<2x3xf32> -> tensor<f64>
      // Forward of 1.
      %x1 = fsdp.input "x" sample_dim 0 shard_of 10 over ["fsdp"] microbatches 3 at 1 : tensor<2x5xf32>
      %y1 = fsdp.input "y" sample_dim 0 shard_of 10 over ["fsdp"] microbatches 3 at 1 : tensor<2x3xf32>
      %n1 = fsdp.microbatch_samples of 10 counted over ["fsdp"] microbatches 3 at 1
      %h1 = nn.einsum "bi,ih->bh" %x1, %in : (tensor<2x5xf32>, tensor<5x4xf32>) -> tensor<2x4xf32>
      %z1 = nn.einsum "bh,ho->bo" %h1, %out : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
      %e1 = arith.subf %z1, %y1 : tensor<2x3xf32>
      %q1 = arith.mulf %e1, %e1 : tensor<2x3xf32>
      %c1 = fsdp.mask_samples %q1, %n1 dim 0 fill 0.0 : tensor<2x3xf32>
      %loss1 = nn.reduce sum "b o ->" %c1 : tensor<2x3xf32> -> tensor<f64>
      %losses1 = arith.addf %loss0, %loss1 : tensor<f64>
      // Forward of 2.
      %x2 = fsdp.input "x" sample_dim 0 shard_of 10 over ["fsdp"] microbatches 3 at 2 : tensor<2x5xf32>
      %y2 = fsdp.input "y" sample_dim 0 shard_of 10 over ["fsdp"] microbatches 3 at 2 : tensor<2x3xf32>
      %n2 = fsdp.microbatch_samples of 10 counted over ["fsdp"] microbatches 3 at 2
      %h2 = nn.einsum "bi,ih->bh" %x2, %in : (tensor<2x5xf32>, tensor<5x4xf32>) -> tensor<2x4xf32>
      %z2 = nn.einsum "bh,ho->bo" %h2, %out : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
      %e2 = arith.subf %z2, %y2 : tensor<2x3xf32>
      %q2 = arith.mulf %e2, %e2 : tensor<2x3xf32>
      %c2 = fsdp.mask_samples %q2, %n2 dim 0 fill 0.0 : tensor<2x3xf32>
      %loss2 = nn.reduce sum "b o ->" %c2 : tensor<2x3xf32> -> tensor<f64>
      %losses2 = arith.addf %losses1, %loss2 : tensor<f64>
      %total = fsdp.all_reduce sum %losses2 over ["fsdp"] : tensor<f64>
      %samples = fsdp.sample_count of 10
      %samples.f64 = arith.sitofp %samples : tensor<i64> to tensor<f64>
      %outputs = arith.constant dense<3.0> : tensor<f64>
      %weight = arith.mulf %samples.f64, %outputs : tensor<f64>
      fsdp.output_sum "loss" %total over %weight
    }
  }
}
