// A classifier of handwritten digits: one hidden layer with a layer norm, softmax cross-entropy.
// `loc("...")` names what an operation computes, as the model's own words in the emitted program.

module @digits {
  // Units: parameters that are gathered together. The mesh comes from the command line.
  fsdp.param @hidden.weight : tensor<64x96xf32> unit "hidden" init <normal, 5.0e-02>
  fsdp.param @hidden.bias : tensor<96xf32> unit "hidden" init <constant, 0.0>
  fsdp.param @norm.scale : tensor<96xf32> unit "hidden" init <constant, 1.0>
  fsdp.param @norm.shift : tensor<96xf32> unit "hidden" init <constant, 0.0>
  fsdp.param @head.weight : tensor<96x10xf32> unit "head" init <normal, 5.0e-02>
  fsdp.param @head.bias : tensor<10xf32> unit "head" init <constant, 0.0>

  // The step of one imaginary device on the whole batch.
  fsdp.step @train train optimizer <adamw, lr = 1.0e-02, weight_decay = 1.0e-02, schedule = cosine> {
    %x = fsdp.input "x" sample_dim 0 : tensor<50x64xf32>
    %label = fsdp.input "label" sample_dim 0 : tensor<50xi32>

    %weight = fsdp.read @hidden.weight : tensor<64x96xf32>
    %bias = fsdp.read @hidden.bias : tensor<96xf32>
    %product = nn.einsum "bi,io->bo" %x, %weight
        : (tensor<50x64xf32>, tensor<64x96xf32>) -> tensor<50x96xf32> loc("hidden.product")
    %biases = nn.repeat "o -> b o" %bias : tensor<96xf32> -> tensor<50x96xf32> loc("hidden.biases")
    %sum = arith.addf %product, %biases : tensor<50x96xf32> loc("hidden.sum")
    %scale = fsdp.read @norm.scale : tensor<96xf32>
    %shift = fsdp.read @norm.shift : tensor<96xf32>
    %normal, %mean, %rstd = nn.layer_norm %sum, %scale, %shift eps 1.0e-05
        : tensor<50x96xf32>, tensor<96xf32> -> tensor<50xf32> loc("hidden.norm")
    %zero = arith.constant dense<0.0> : tensor<50x96xf32>
    %hidden = arith.maximumf %normal, %zero : tensor<50x96xf32> loc("hidden.relu")

    %head = fsdp.read @head.weight : tensor<96x10xf32>
    %offset = fsdp.read @head.bias : tensor<10xf32>
    %scores = nn.einsum "bi,io->bo" %hidden, %head
        : (tensor<50x96xf32>, tensor<96x10xf32>) -> tensor<50x10xf32> loc("head.product")
    %offsets = nn.repeat "o -> b o" %offset : tensor<10xf32> -> tensor<50x10xf32> loc("head.offsets")
    %logits = arith.addf %scores, %offsets : tensor<50x10xf32> loc("head.logits")

    // Loss and metrics are a sum and a weight, so that batches of any size add up.
    %count = arith.constant dense<50.0> : tensor<f64>
    %losses, %log_sum_exp = nn.cross_entropy %logits, %label
        : tensor<50x10xf32>, tensor<50xi32> -> tensor<50xf32>, tensor<50xf32> loc("losses")
    %total = nn.reduce sum "b ->" %losses : tensor<50xf32> -> tensor<f64> loc("total")
    fsdp.loss %total over %count
    %guess = nn.argmax %logits : tensor<50x10xf32> -> tensor<50xi32> loc("guess")
    %hit = arith.cmpi eq, %guess, %label : tensor<50xi32> loc("hit")
    %hits = arith.uitofp %hit : tensor<50xi1> to tensor<50xf32> loc("hits")
    %right = nn.reduce sum "b ->" %hits : tensor<50xf32> -> tensor<f64> loc("right")
    fsdp.metric "accuracy" %right over %count
  }
}
